"""A ministack function that forwards its payload to the test, and returns the test's answer or error.

It is a custom runtime, because ministack's Python runtime reports every error as Runtime.HandlerError.
"""

import json
import os
import urllib.request

TEST = os.environ["TEST_URL"] + "/" + os.environ["AWS_LAMBDA_FUNCTION_NAME"]
API = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"


def post(url, body):
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return response.read()


while True:
    with urllib.request.urlopen(API + "next") as response:
        invocation = API + response.headers["Lambda-Runtime-Aws-Request-Id"]
        payload = response.read()
    reply = json.loads(post(TEST, payload))
    outcome = "/response" if "answer" in reply else "/error"
    post(invocation + outcome, json.dumps(reply.get("answer", reply)).encode())
