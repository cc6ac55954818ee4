"""A fake AWS account: moto on a loopback port, filled by the test.

Prints `ready http://127.0.0.1:PORT`, then answers every line on stdin, `VERB ARGUMENT…` as a JSON list, with a line of
JSON, and ends when stdin does. Tests start it with the interpreter of moto's virtual environment.
"""

import io
import json
import os
import re
import sys
import threading
import time
import urllib.parse
import zipfile

os.environ.update(AWS_ACCESS_KEY_ID="seed", AWS_SECRET_ACCESS_KEY="seed", AWS_DEFAULT_REGION="us-east-1")
for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
    os.environ.pop(name, None)

import boto3
import botocore.session
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, iam_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

S3 = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "arn:aws:s3:::raw-events*"}
TABLE = {"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": "*"}
METRICS = {"Effect": "Allow", "Action": ["cloudwatch:PutMetricData", "sqs:SendMessage"], "Resource": "*"}
BASIC = "AWSLambdaBasicExecutionRole"


class Account:
    def __init__(self, endpoint):
        self.endpoint = endpoint
        client = lambda service: boto3.client(service, endpoint_url=endpoint)
        self.iam, self.aws_lambda, self.logs, self.ec2, self.ssm = map(client, ("iam", "lambda", "logs", "ec2", "ssm"))

    def function(self, name):
        """A healthy function in a VPC, with a role, inline and attached policies, and a log group."""
        trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
        role = self.iam.create_role(RoleName=f"{name}-role", Path="/service-role/", AssumeRolePolicyDocument=json.dumps(trust))
        self.put_policy(f"{name}-role", f"{name}-access", [S3, TABLE])
        self.put_policy(f"{name}-role", f"{name}-metrics", [METRICS])
        self.iam.attach_role_policy(RoleName=f"{name}-role", PolicyArn=managed_policy(BASIC))
        vpc = self.ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
        subnet = self.ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        group = self.ec2.create_security_group(GroupName=f"{name}-group", Description="-", VpcId=vpc)["GroupId"]
        self.ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "Ipv6Ranges": [{"CidrIpv6": "::/0", "Description": "to AWS & more"}]}])
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("handler.py", "def handle(event, context): pass\n")
        self.aws_lambda.create_function(
            FunctionName=name, Runtime="python3.13", Role=role["Role"]["Arn"], Handler="handler.handle", Timeout=60,
            Code={"ZipFile": code.getvalue()}, VpcConfig={"SubnetIds": [subnet], "SecurityGroupIds": [group]})
        self.logs.create_log_group(logGroupName=f"/aws/lambda/{name}")
        self.logs.create_log_stream(logGroupName=f"/aws/lambda/{name}", logStreamName="stream")
        return group

    def put_policy(self, role, policy, statements):
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        self.iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=document)

    def parameter(self, name, value):
        """A parameter that is kept encrypted."""
        self.ssm.put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)

    def log(self, name, *messages):
        """Log events of now, a millisecond apart."""
        now = int(time.time() * 1000) - len(messages)
        events = [{"timestamp": now + at, "message": message + "\n"} for at, message in enumerate(messages)]
        self.logs.put_log_events(logGroupName=f"/aws/lambda/{name}", logStreamName="stream", logEvents=events)

    def refuse(self, *actions):
        """From now on, refuses these actions, as IAM would, and no others."""
        refused[:] = actions

    def calls(self):
        """The actions that were called since it was last asked, but for those that set the account up."""
        seen = sorted(set(called))
        called.clear()
        return seen

    def state(self, name, group):
        """All that a fault may change, for comparing before and after."""
        role = f"{name}-role"
        policies = self.iam.list_role_policies(RoleName=role)["PolicyNames"]
        rules = self.ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]
        words = ("IpProtocol", "FromPort", "ToPort", "CidrIpv4", "CidrIpv6", "Description")
        return {
            "policies": {policy: self.iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"] for policy in policies},
            "attached": [policy["PolicyArn"] for policy in self.iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]],
            "concurrency": self.aws_lambda.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions"),
            "egress": sorted(json.dumps({word: rule.get(word) for word in words}) for rule in rules if rule["IsEgress"]),
        }

    def reserve(self, name, executions):
        self.aws_lambda.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=executions)


def managed_policy(name):
    """The ARN of one of AWS's own policies. moto has them all, and would take ten seconds to load them."""
    account, partition = "123456789012", "aws"
    policy = AWSManagedPolicy.from_data(name, account, "us-east-1", json.loads(aws_managed_policies_data)[name])
    iam_backends[account][partition].managed_policies[policy.arn] = policy
    return policy.arn


called, refused = [], []
moto = DomainDispatcherApplication(create_backend_app)
lambda_model = botocore.session.get_session().get_service_model("lambda")


def action_of(environ, body):
    """What an IAM policy calls a request: `service:Operation`."""
    scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
    service = scope[1] if scope else "unsigned"
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return f"{service}:{target.split('.')[-1]}"
    if service != "lambda":
        return f"{service}:{urllib.parse.parse_qs(body.decode()).get('Action', ['?'])[0]}"
    for name in lambda_model.operation_names:
        http = lambda_model.operation_model(name).http
        pattern = re.sub(r"\{[^}]*\}", "[^/]+", http["requestUri"].split("?")[0])
        if http["method"] == environ["REQUEST_METHOD"] and re.fullmatch(pattern + "/?", environ["PATH_INFO"]):
            return f"lambda:{name}"
    return "lambda:?"


def refusal(action):
    service, operation = action.split(":")
    words = f"User: arn:aws:iam::123456789012:user/reader is not authorized to perform: {action}"
    if service in ("iam", "sts"):
        return "text/xml", f"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{words}</Message></Error></ErrorResponse>"
    if service == "ec2":
        return "text/xml", f"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>{words}</Message></Error></Errors></Response>"
    return "application/x-amz-json-1.1", json.dumps({"__type": "AccessDeniedException", "message": words})


def application(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    if "Boto3" in environ.get("HTTP_USER_AGENT", ""):
        return moto(environ, start_response)
    action = action_of(environ, body)
    called.append(action)
    if action not in refused:
        return moto(environ, start_response)
    kind, text = refusal(action)
    start_response("403 Forbidden", [("Content-Type", kind), ("x-amzn-ErrorType", "AccessDeniedException")])
    return [text.encode()]


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
account = Account(f"http://127.0.0.1:{server.port}")
print(f"ready {account.endpoint}", flush=True)
for line in sys.stdin:
    verb, *arguments = json.loads(line)
    print(json.dumps(getattr(account, verb)(*arguments)), flush=True)
