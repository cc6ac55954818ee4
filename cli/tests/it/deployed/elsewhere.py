"""Ministack whose state machines write to another DynamoDB.

Its `dynamodb:putItem` calls its own table within the process, wherever AWS_ENDPOINT_URL_DYNAMODB points. Here that one
call is handed on; everything else is ministack as it is.
"""

import json
import os
import runpy
import urllib.error
import urllib.request

from ministack.services import dynamodb

HEADERS = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=000000000000/20261122/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "DynamoDB_20120810.PutItem",
}


def put_item(request):
    body = json.dumps(request).encode()
    sent = urllib.request.Request(os.environ["AWS_ENDPOINT_URL_DYNAMODB"], body, HEADERS)
    try:
        with urllib.request.urlopen(sent) as answer:
            return answer.status, {}, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, {}, refusal.read()


dynamodb._put_item = put_item
runpy.run_module("ministack", run_name="__main__")
