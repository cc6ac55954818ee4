"""Ministack (1.5.33) as an account in which whoever calls needs the permission.

It checks signatures and evaluates policies (AUTH) but for what it does not know of some requests: the partition that one
to DynamoDB is about, the state machine of a task's token, whose policies are simulated, that a runtime's session is
stopped, that a function's concurrency is read and not changed, which key an alias means, and who uses a key. This is told here. What was asked is kept in the file ASKED, a line a request: who, what, on what, in which partition, and
how it went.

With IMAGES it makes a runtime only if its image is there.

It makes no agent runtime of a template and runs none, and no policy of an event bus, so that it is told what one is called, and requests to it go on to
RUNTIME. Its state machines' `dynamodb:putItem` calls its
own table within the process, wherever AWS_ENDPOINT_URL_DYNAMODB points: that one goes on as well. They do not know
`s3:putObject`: this file does the upload, without checking permissions.
"""

import asyncio
import json
import os
import re
import runpy
import urllib.error
import urllib.request
from urllib.parse import quote, unquote

from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import get_account_id
from ministack.services import bedrock_agentcore, dynamodb, ecr, kms, s3, stepfunctions
from ministack.services.cloudformation import provisioners

# Not for the functions, which have this environment.
RUNTIME, ASKED = os.environ.pop("RUNTIME"), os.environ.pop("ASKED")
IMAGES = os.environ.pop("IMAGES", None)
PARTITIONS = "dynamodb:LeadingKeys"

known_action = iam_actions.extract_iam_action
known_resource = iam_actions.extract_resource_arn
known_context = iam_actions.dynamodb_service_context
known_enforce = iam_evaluator.enforce
known_condition = iam_evaluator._resolve_condition_key
known_sdk_call = stepfunctions._dispatch_aws_sdk_rest_xml


def make_runtime(logical_id, properties, stack):
    # As AgentCore, which looks for the image. Tests that deploy no image do not ask for that.
    image = properties["AgentRuntimeArtifact"]["ContainerConfiguration"]["ContainerUri"].split("/")[-1].split(":")
    if IMAGES and not any(image[1] in kept["imageTags"] for kept in ecr._images.get(image[0], [])):
        raise ValueError(f"The specified image identifier does not exist in the repository: {image}")
    name = properties["AgentRuntimeName"] + "-a1B2c3D4e5"
    arn = "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/" + name
    return name, {"AgentRuntimeArn": arn, "AgentRuntimeId": name}


def of_runtime(path):
    """The runtime's ARN and the operation on it, of a path of AgentCore's data plane."""
    found = re.fullmatch(r"/runtimes/(.+?)/(invocations|stopruntimesession)/?", unquote(path))
    return found.groups() if found else (None, None)


def action(service, method, path, *request):
    if of_runtime(path)[1] == "stopruntimesession":
        return "bedrock-agentcore:StopRuntimeSession"
    if (service, method) == ("lambda", "GET") and path.endswith("/concurrency"):
        return "lambda:GetFunctionConcurrency"
    # Source: AWS, "Using IAM with DynamoDB transactions".
    known = known_action(service, method, path, *request)
    return "dynamodb:PutItem" if known == "dynamodb:TransactWriteItems" else known


def resource(service, method, path, headers, body, query, *request):
    # Source: AWS, "Service Authorization Reference", AWS Step Functions; AWS Identity and Access Management.
    if service == "states" and "taskToken" in json.loads(body):
        # The other machine, whose name is longer, hands out no tokens.
        return min(stepfunctions._state_machines, key=len)
    if service == "iam" and "PolicySourceArn" in query:
        return query["PolicySourceArn"][0]
    if service == "dynamodb" and "TransactItems" in json.loads(body):
        table = json.loads(body)["TransactItems"][0]["Put"]["TableName"]
        return f"arn:aws:dynamodb:us-east-1:{get_account_id()}:table/{table}"
    if service == "ecr" and "repositoryNames" in json.loads(body):
        return f"arn:aws:ecr:us-east-1:{get_account_id()}:repository/{json.loads(body)['repositoryNames'][0]}"
    if service == "kms" and json.loads(body).get("KeyId", "").startswith("alias/"):
        return kms._resolve_key(json.loads(body)["KeyId"])["Arn"]
    return of_runtime(path)[0] or known_resource(service, method, path, headers, body, query, *request)


def context(body):
    """The condition keys of a request to DynamoDB."""
    request, keys = json.loads(body), known_context(body)
    item = request.get("Item") or request.get("Key")
    puts = [write["Put"]["Item"]["PK"]["S"] for write in request.get("TransactItems", [])]
    condition = re.search(r"=\s*(:\w+)", request.get("KeyConditionExpression", ""))
    if puts:
        keys[PARTITIONS] = puts
    elif item:
        keys[PARTITIONS] = [item["PK"]["S"]]
    elif condition:
        keys[PARTITIONS] = [request["ExpressionAttributeValues"][condition[1]]["S"]]
    return keys


def condition(key, context):
    value = known_condition(key, context)
    if key.lower() != "aws:principalarn":
        return value
    # Source: AWS, "AWS global condition context keys": of a role's session it is the role.
    session = re.fullmatch(r"arn:aws:sts::(\d+):assumed-role/([^/]+)/.*", value or "")
    return f"arn:aws:iam::{session[1]}:role/{session[2]}" if session else value


def enforce(access_key, asked, service, region, resource_arn="*", service_context=None):
    if service == "kms":
        aliases = [name.split(":")[-1] for name, key in kms._aliases.items() if resource_arn.endswith(key)]
        service_context = {"kms:ResourceAliases": aliases, "kms:CallerAccount": get_account_id()}
    denied = known_enforce(access_key, asked, service, region, resource_arn, service_context)
    caller = iam_evaluator.resolve_principal(access_key, get_account_id())
    who = getattr(caller, "arn", "nobody").split(":")[-1].split("/")[-1]
    if who.startswith("aws-cdk-"):
        # The session of a role that `cdk bootstrap` made, whose policies are not ours.
        denied = None
    partition = (service_context or {}).get(PARTITIONS, ["-"])[0]
    kind = re.sub("#.*", "#", partition)
    with open(ASKED, "a") as file:
        file.write(f"{who} {asked} {resource_arn} {kind} {'refused' if denied else 'allowed'}\n")
    return denied


def sent(url, headers, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, dict(refusal.headers), refusal.read()


async def runtime(method, path, headers, body, query):
    arn, operation = of_runtime(path)
    url = f"{RUNTIME}/runtimes/{quote(arn, safe='')}/{operation}"
    passed = {name: value for name, value in headers.items() if name.lower() not in ("host", "content-length")}
    return await asyncio.to_thread(sent, url, passed, body)


def put_item(request):
    headers = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=000000000000/20261122/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=0",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.PutItem",
    }
    status, _, answer = sent(os.environ["AWS_ENDPOINT_URL_DYNAMODB"], headers, json.dumps(request).encode())
    return status, {}, answer


def sdk_call(service_info, service_name, name, request):
    if (service_name, name) != ("s3", "putObject"):
        return known_sdk_call(service_info, service_name, name, request)
    body = json.dumps(request["Body"]).encode()
    status, _, answer = s3._put_object(request["Bucket"], request["Key"], body, {"content-type": request["ContentType"]})
    if status >= 400:
        raise stepfunctions._ExecutionError("S3.S3Exception", answer.decode())
    return {}


iam_actions.extract_iam_action = action
iam_actions.extract_resource_arn = resource
iam_actions.dynamodb_service_context = context
iam_evaluator.enforce = enforce
iam_evaluator._resolve_condition_key = condition
bedrock_agentcore.handle_request = runtime
stepfunctions._dispatch_aws_sdk_rest_xml = sdk_call
provisioners._RESOURCE_HANDLERS["AWS::BedrockAgentCore::Runtime"] = {
    "create": make_runtime,
    "delete": lambda physical_id, properties: None,
}
# Nobody evaluates it.
provisioners._RESOURCE_HANDLERS["AWS::Events::EventBusPolicy"] = {
    "create": lambda logical_id, properties, stack: (logical_id, {}),
    "delete": lambda physical_id, properties: None,
}
if "AWS_ENDPOINT_URL_DYNAMODB" in os.environ:
    dynamodb._put_item = put_item
runpy.run_module("ministack", run_name="__main__")
