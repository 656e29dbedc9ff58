"""Check that the app takes no files and no long requests."""

import asyncio

import pytest

from cardiobench.leaderboard import serving


def answered(path, *parts, method="POST", headers=()):
    """Return the status of a request of several parts, and the number of bytes that the app received of it."""
    messages = iter([*({"type": "http.request", "body": part, "more_body": True} for part in parts)])
    sent, received = [], []

    async def receive():
        return next(messages, {"type": "http.request", "body": b"", "more_body": False})

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        while (message := await receive()).get("more_body"):
            received.append(len(message["body"]))
        await send({"type": "http.response.start", "status": 200 if message["type"] == "http.request" else 499})

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    asyncio.run(serving.SmallRequests(app)(scope, receive, send))
    return sent[0]["status"], sum(received)


@pytest.mark.parametrize(
    "path", ["/upload", "/gradio_api/upload", "/gradio_api/upload/", "/gradio_api/stream/1", "/process_recording"]
)
def test_uploads_are_refused_unread(path):
    assert answered(path, b"x" * 10) == (403, 0)


def test_long_requests_are_refused():
    big = str(serving.MOST_BYTES + 1).encode()
    assert answered("/gradio_api/queue/join", b"x" * 10) == (200, 10)
    assert answered("/gradio_api/queue/join", b"x", headers=[(b"content-length", big)]) == (413, 0)
    assert answered("/gradio_api/queue/join", b"x", headers=[(b"content-length", b"-1")]) == (413, 0)
    status, received = answered("/gradio_api/queue/join", *[b"x" * 60_000] * 5)
    assert status == 499 and received <= serving.MOST_BYTES
    assert answered("/gradio_api/upload_progress", method="GET") == (200, 0)


@pytest.mark.slow
def test_running_app_takes_no_files(tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed: make test-leaderboard")
    import httpx

    from cardiobench.leaderboard.app import launch
    from tests.report import example_results

    example_results.write_result(tmp_path, "org/one")
    app = launch([str(tmp_path)], block=False)
    try:
        assert httpx.get(app.local_url).status_code == 200
        for path in ("gradio_api/upload", "upload"):
            assert httpx.post(app.local_url + path, files={"files": b"x" * 1000}).status_code == 403
        assert httpx.post(app.local_url + "gradio_api/queue/join", content=b"x" * 1_000_000).status_code == 413
    finally:
        app.close()
