"""Made-up secrets of every class, put together from pieces so that no scanner takes this file for a leak.

`SECRETS` holds values that show by themselves; `variants` puts one into prose, JSON, URLs, shells and configuration.
`ASSIGNED` are whole texts in which a name gives a value away, with the text that must come out.
"""

from __future__ import annotations

import json

MARK = "[REDACTED]"
R24 = "aB3dE5fG7" + "hJ9kL1mN3pQ5rS7"
R40 = R24 + "tU9vW1xY3zA5bC7d"
UP16 = "ABCDEFGH" + "12345678"
HEX32 = "0a1b2c3d4e5f6789" * 2
UUID = "3f2c6e1a-8c5b-4c55-9a6b-0c6d1a2b3c4d"
DASHES = "-" * 5


def pem(kind: str, body: str = R40, end: bool = True, newline: str = "\n") -> str:
    lines = [f"{DASHES}BEGIN {kind}{DASHES}", body, body[::-1], R24 + "=="]
    return newline.join([*lines, f"{DASHES}END {kind}{DASHES}"] if end else lines)


JWT_HEAD = "eyJ" + "hbGciOiJIUzI1NiJ9"
JWT_BODY = "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0"

SECRETS: dict[str, str] = {
    "openai": "sk-" + R24,
    "openai-project": "sk-" + "proj-" + R40,
    "anthropic": "sk-" + "ant-api03-" + R40 + "-" + R24,
    "sixteen": "sk-" + "abcdefghijklmnop",
    "stripe": "sk_" + "live_" + R24,
    "stripe-restricted": "rk_" + "live_" + R24,
    **{f"github-{k}": f"gh{k}" + "_" + R40[:36] for k in "pousr"},
    "github-fine": "github" + "_pat_" + R40 + "_" + R24,
    "gitlab": "glpat" + "-" + R24[:20],
    "aws": "AKIA" + UP16,
    "aws-temporary": "ASIA" + UP16,
    "google": "AIza" + R40[:35],
    "google-refresh": "1//" + "0" + R40,
    "meta": "EAA" + R40,
    "telegram": "123456789" + ":AA" + R40[:33],
    "telegram-35": "1234567890" + ":" + R40[:35],
    "gohighlevel": "pit-" + UUID,
    "slack-bot": "xoxb" + "-123456789012-" + R24,
    "slack-user": "xoxp" + "-abcdefghij",
    "slack-app": "xapp" + "-1-A0123456-" + R24,
    "slack-hook": "https://hooks." + "slack.com/services/T0000AAAA/B0000AAAA/" + R24,
    "jwt": f"{JWT_HEAD}.{JWT_BODY}.{R40}",
    "jwt-cut": f"{JWT_HEAD}.{JWT_BODY}.{R24[:5]}",
    "npm": "npm" + "_" + R40[:36],
    "huggingface": "hf" + "_" + R40[:34],
    "pem-rsa": pem("RSA PRIVATE KEY"),
    "pem-openssh": pem("OPENSSH PRIVATE KEY"),
    "pem-pgp": pem("PGP PRIVATE KEY BLOCK"),
    "pem-plain-crlf": pem("PRIVATE KEY", newline="\r\n"),
    "pem-escaped": pem("EC PRIVATE KEY", newline="\\n"),
    "pem-twice-escaped": pem("ENCRYPTED PRIVATE KEY", newline="\\\\n"),
    "ssh-path": "/home/dev/" + ".ssh/id_ed25519",
    "aws-path": "~/" + ".aws/credentials",
    "kube-path": "$HOME/" + ".kube/config",
    "gcloud-path": "/home/dev/" + ".config/gcloud/credentials.db",
    "gnupg-path": "~/" + ".gnupg/private-keys-v1.d/x.key",
}


def variants(secret: str) -> dict[str, str]:
    """One secret in the texts in which it turns up."""
    return {
        "alone": secret,
        "prose": f"I pasted {secret} into the chat, sorry.",
        "quoted": f'It is "{secret}", or so I think.',
        "backticks": f"Use `{secret}` for now.",
        "json": json.dumps({"note": "before " + secret, "next": 1}),
        "json-in-json": json.dumps(json.dumps({"value": secret})),
        "query": f"https://example.org/x?a=1&v={secret}&b=2",
        "shell": f"export SOME_TOKEN={secret} && make",
        "shell-quoted": f"SOME_API_KEY='{secret}' ./run",
        "dotenv": f"A=1\nSOME_SECRET={secret}\nB=2",
        "yaml": f"a: 1\napi_key: {secret}\nb: 2",
        "header": f"curl -H 'X-Api-Key: {secret}' https://example.org",
        "bearer": f"Authorization: Bearer {secret}",
        "code": f'client = Client(api_key="{secret}", retries=3)',
        "list": f"- {secret}\n- more",
        "table": f"| a | {secret} | b |",
        "cjk": f"鍵は{secret}です",
        "end": f"so long\n{secret}",
    }


def pieces(secret: str, size: int = 12) -> list[str]:
    """What must not be left of it: every run of its own characters, without what names its class."""
    lines = [line for line in secret.replace("\\\\n", "\n").replace("\\n", "\n").split("\n") if "-----" not in line]
    return [line.strip()[-size:] for line in lines if len(line.strip()) >= size]


ASSIGNED: list[tuple[str, str]] = [
    # shells and environment files
    ("FOO_TOKEN=" + "abc", "FOO_TOKEN=" + MARK),
    ("FOO_KEY=" + "abcdef make", f"FOO_KEY={MARK} make"),
    ("export DB_PASSWORD=" + '"hunter two"', f'export DB_PASSWORD="{MARK}"'),
    ("export DB_PASSWD=" + "'hunter2'; run", f"export DB_PASSWD='{MARK}'; run"),
    ("POSTGRES_PASSWORD=" + "mysecretpassword", f"POSTGRES_PASSWORD={MARK}"),
    ("SOME_CREDENTIALS=" + "abc", f"SOME_CREDENTIALS={MARK}"),
    ("APP_PRIVATE_KEY=" + "abc", f"APP_PRIVATE_KEY={MARK}"),
    ("PGPASSWORD=" + "x1 psql", f"PGPASSWORD={MARK} psql"),
    ("SECRET_KEY_BASE=" + "abc", f"SECRET_KEY_BASE={MARK}"),
    ("AWS_ACCESS_KEY_ID=" + "LTAIabc", f"AWS_ACCESS_KEY_ID={MARK}"),
    ("DB_PASS=" + "abc", f"DB_PASS={MARK}"),
    ("aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYKEY", f"aws_secret_access_key = {MARK}"),
    ("//registry.npmjs.org/:_authToken=" + R24, f"//registry.npmjs.org/:_authToken={MARK}"),
    ("spring.datasource.password=" + "correcthorse", f"spring.datasource.password={MARK}"),
    ('"out": "FOO_TOKEN=' + 'abc\\nTests: 3 failed"', f'"out": "FOO_TOKEN={MARK}\\nTests: 3 failed"'),
    # configuration
    ("X_SECRET: " + "abcdefgh", f"X_SECRET: {MARK}"),
    ("POSTGRES_PASSWORD: " + "example\nPORT: 1", f"POSTGRES_PASSWORD: {MARK}\nPORT: 1"),
    ("password: " + "hunter2", f"password: {MARK}"),
    ("password: " + "correcthorse\nuser: bob", f"password: {MARK}\nuser: bob"),
    ("password: " + "mypassword123", f"password: {MARK}"),
    ("client_secret: " + "GhIjKl1234", f"client_secret: {MARK}"),
    ("client-key-data: " + "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0", f"client-key-data: {MARK}"),
    ("password = " + "hunter2", f"password = {MARK}"),
    ("<password>" + "hunter2</password>", f"<password>{MARK}</password>"),
    ("Server=a;User Id=sa;Password=" + "correcthorse;x=1", f"Server=a;User Id=sa;Password={MARK};x=1"),
    ("AccountKey=" + R24 + "==;Endpoint=x", f"AccountKey={MARK};Endpoint=x"),
    # JSON and code
    ('"password": ' + '"hunter2",', f'"password": "{MARK}",'),
    ('{"password":' + '"hunter2"}', f'{{"password":"{MARK}"}}'),
    ('\\"password\\": \\"' + 'hunter2\\"}', f'\\"password\\": \\"{MARK}\\"}}'),
    ('"password": "' + 'hun\\"ter2", "a": 1', f'"password": "{MARK}", "a": 1'),
    ("{'api_key': " + "'abcdef'}", f"{{'api_key': '{MARK}'}}"),
    ("password = " + '"hunter2"  # no', f'password = "{MARK}"  # no'),
    ("password: str = " + '"hunter2"', f'password: str = "{MARK}"'),
    ("API_KEY: Final[str] = " + '"abcd"', f'API_KEY: Final[str] = "{MARK}"'),
    ("'secret' => " + "'abcdef',", f"'secret' => '{MARK}',"),
    ('apiKey: "' + 'abcdef"', f'apiKey: "{MARK}"'),
    ('os.environ["API_KEY"] = ' + '"abcd"', f'os.environ["API_KEY"] = "{MARK}"'),
    ('headers.set("X-Api-Key", ' + f'"{R24}")', f'headers.set("X-Api-Key", "{MARK}")'),
    ('"token": "' + R24 + '"', f'"token": "{MARK}"'),
    ('"auth": "' + 'dXNlcjpwYXNzd29yZDE="', f'"auth": "{MARK}"'),
    # headers
    ("Authorization: Basic " + "dXNlcjpwYXNz", f"Authorization: Basic {MARK}"),
    ("Authorization: Bearer " + "abcdefghijklmnop", f"Authorization: Bearer {MARK}"),
    ('"Authorization": "token ' + R24 + '"', f'"Authorization": "token {MARK}"'),
    ("authorization: " + R24, f"authorization: {MARK}"),
    ('-H "X-Api-Key: ' + 'abcdefgh"', f'-H "X-Api-Key: {MARK}"'),
    ("x-auth-token: " + "abcdefgh", f"x-auth-token: {MARK}"),
    ("X-Session-Token: " + "abcdefgh", f"X-Session-Token: {MARK}"),
    ("PRIVATE-TOKEN: " + "abcdefgh1", f"PRIVATE-TOKEN: {MARK}"),
    ("Cookie: sid=" + "abcdefghijk; x=1", f"Cookie: {MARK}"),
    # URLs and commands
    ("https://u:" + "p@h/x", f"https://u:{MARK}@h/x"),
    ("postgres://u:" + "p@ss@h:5432/d", f"postgres://u:{MARK}@h:5432/d"),
    ("postgres://u:" + "p/w#1@h/d", f"postgres://u:{MARK}@h/d"),
    ("redis://:" + "pw@h:1/0", f"redis://:{MARK}@h:1/0"),
    ("https:\\/\\/u:" + "pw1@h\\/x", f"https:\\/\\/u:{MARK}@h\\/x"),
    ("https://" + R24 + "@github.com/a/b", f"https://{MARK}@github.com/a/b"),
    ("root:" + "hunter22@tcp(h:3306)/d", f"root:{MARK}@tcp(h:3306)/d"),
    ("db is admin:" + "hunter2@db.example.org ok", f"db is admin:{MARK}@db.example.org ok"),
    ("?access_token=" + "abc&x=1", f"?access_token={MARK}&x=1"),
    ("login --password " + "hunter2 x", f"login --password {MARK} x"),
    ("--password=" + "correcthorse x", f"--password={MARK} x"),
    ("--token " + '"abc" x', f'--token "{MARK}" x'),
    ("curl -u bob:" + "hunter2 http://x", f"curl -u bob:{MARK} http://x"),
    ("mysql -u root -p" + "Secret db", f"mysql -u root -p{MARK} db"),
    ("sshpass -p " + "hunter2 ssh x", f"sshpass -p {MARK} ssh x"),
    ("docker login -u bob -p " + "hunter2", f"docker login -u bob -p {MARK}"),
    ("machine h login me password " + "abc", f"machine h login me password {MARK}"),
    ("https://x-access-token:" + "ghs_" + R24 + "@h/o/r", f"https://x-access-token:{MARK}@h/o/r"),
    ("cli --token=" + "hunter-12345", f"cli --token={MARK}"),
    ("redis-cli -h db -a " + "hunter2 ping", f"redis-cli -h db -a {MARK} ping"),
    (
        "echo " + '"hunter2" | docker login ghcr.io -u me --password-stdin',
        f'echo "{MARK}" | docker login ghcr.io -u me --password-stdin',
    ),
    ("printf '%s' " + "hunter2 | gh auth login --with-token", f"printf '%s' {MARK} | gh auth login --with-token"),
    ("docker login --password-stdin <<< " + "hunter2", f"docker login --password-stdin <<< {MARK}"),
    ("openssl rsa -passin pass:" + "hunter2 -in x", f"openssl rsa -passin pass:{MARK} -in x"),
    ("openssl enc -aes-256-cbc -k " + "hunter2", f"openssl enc -aes-256-cbc -k {MARK}"),
    ("ssh-keygen -t rsa -N " + "hunter2 -f x", f"ssh-keygen -t rsa -N {MARK} -f x"),
    ("htpasswd -b f bob " + "hunter2", f"htpasswd -b f bob {MARK}"),
    ("7z a -p" + "hunter2 x", f"7z a -p{MARK} x"),
    ("zip -P " + "hunter2 a.zip b", f"zip -P {MARK} a.zip b"),
    ("mongosh -u a -p " + "hunter2", f"mongosh -u a -p {MARK}"),
    ("sqlcmd -S h -P " + "hunter2", f"sqlcmd -S h -P {MARK}"),
    ("ldapsearch -D cn=a -w " + "hunter2", f"ldapsearch -D cn=a -w {MARK}"),
    ("http --auth me:" + "hunter2 h", f"http --auth me:{MARK} h"),
    ("gh secret set FOO --body " + "hunter2", f"gh secret set FOO --body {MARK}"),
    ("fly secrets set FOO=" + "hunter2 BAR=hunter3", f"fly secrets set FOO={MARK} BAR={MARK}"),
    (
        "kubectl create secret generic x --from-literal=a=" + "hunter2",
        f"kubectl create secret generic x --from-literal=a={MARK}",
    ),
    ("vault kv put secret/x a=" + "hunter2", f"vault kv put secret/x a={MARK}"),
    ("ALTER USER x WITH PASSWORD '" + "hunter two'", f"ALTER USER x WITH PASSWORD '{MARK}'"),
    ("create user x identified by '" + "hunter2'", f"create user x identified by '{MARK}'"),
    ("mysql -u root \\\n  -p" + "hunter2 db", f"mysql -u root \\\n  -p{MARK} db"),
    ("docker login -u me \\\n  -p " + "hunter2", f"docker login -u me \\\n  -p {MARK}"),
    ("redis-cli -h db \\\n  -a " + "hunter2 ping", f"redis-cli -h db \\\n  -a {MARK} ping"),
    ("heroku config:set FOO=" + "hunter2", f"heroku config:set FOO={MARK}"),
    ("curl -b 'session=" + "hunter2x' http://x", f"curl -b 'session={MARK}' http://x"),
    ("htpasswd -Bbn bob " + "hunter2", f"htpasswd -Bbn bob {MARK}"),
    ("https://bob:" + "q7Rt.9zLm#2Xw@h/r.git", f"https://bob:{MARK}@h/r.git"),
    ("Das Passwort ist " + "hunter2x", f"Das Passwort ist {MARK}"),
    ("密码是 " + "hunter2x", f"密码是 {MARK}"),
    ("ansible_become_pass=" + "hunter2", f"ansible_become_pass={MARK}"),
    ('{"Key":"DB_PASSWORD","Value":"' + R24 + '"}', f'{{"Key":"DB_PASSWORD","Value":"{MARK}"}}'),
    # a name and its value without a sign between them
    ("aws configure set aws_secret_access_key " + R40, f"aws configure set aws_secret_access_key {MARK}"),
    ("set -x API_TOKEN " + R24, f"set -x API_TOKEN {MARK}"),
    ("npm config set //r.example.org/:_authToken " + UUID, f"npm config set //r.example.org/:_authToken {MARK}"),
    ('secret_token "' + R24 + '"', f'secret_token "{MARK}"'),
    ("password:\n  " + R24 + "\nuser: x", f"password:\n  {MARK}\nuser: x"),
    ("api_key: |\n  " + R24, f"api_key: |\n  {MARK}"),
    ("- name: DB_PASSWORD\n  value: " + R24, f"- name: DB_PASSWORD\n  value: {MARK}"),
    ('{"name": "API_TOKEN", "value": "' + R24 + '"}', f'{{"name": "API_TOKEN", "value": "{MARK}"}}'),
    ('"password": ["' + R24 + '"]', f'"password": ["{MARK}"]'),
    ("pass=" + R24, f"pass={MARK}"),
    ("db_pw=" + "hunter2", f"db_pw={MARK}"),
    ('psk="' + R24 + '"', f'psk="{MARK}"'),
    # prose
    ("Passwort: " + "hunter2", f"Passwort: {MARK}"),
    ("contraseña: " + "hunter2", f"contraseña: {MARK}"),
    ("密码：" + "hunter2", f"密码：{MARK}"),
    ("パスワード: " + "hunter2", f"パスワード: {MARK}"),
    ("seed phrase: " + "river stone " * 5 + "river stone.", f"seed phrase: {MARK}."),
    ("the password is " + "hunter2, ok?", f"the password is {MARK}, ok?"),
    ("set the password to `" + "Tr0ub4dor&3`.", f"set the password to `{MARK}`."),
    ("API key: " + R24, f"API key: {MARK}"),
    ("my api key is " + R24 + ".", f"my api key is {MARK}."),
    ("cat " + "~/.ssh/id_rsa.", f"cat {MARK}."),
    ("scp h:" + ".ssh/authorized_keys .", f"scp h:{MARK} ."),
    ("type C:\\Users\\dev\\" + ".ssh\\id_rsa now", f"type C:{MARK} now"),
]

ORDINARY = r"""
token = get_token()
token = tokens[i]
token = cls._process_token(tdef[1])
token == "if"
if token == "(":
token: Token
token: string;
case token: return
password: str
password: str | None = None
password = getpass.getpass()
password = input("Password: ")
def unix_getpass(prompt='Password: ', stream=None):
password = args.password
password=password,
login(user, password=password, token=self._token)
def f(key, token, password):
def f(password: str = "", token: str | None = None) -> None:
assert token.kind == Kind.NAME
self.assertIn('Password:', out)
KEY_ERROR = 3
key_error = KeyError("x")
KEY=value
<a accesskey="n" href="x.html">; passphrase: &#x3C;string>
key: value123456789
"key": "abc123def456ghi789"
api_key=os.environ["X"]
api_key = os.environ["API_KEY"]
api_key: Optional[str] = None
apiKey: process.env.API_KEY,
apiKey: string
"apiKey": apiKey,
this.apiKey = apiKey;
const { token } = useAuth()
secret: bytes,
secret = b64decode(x)
secret := os.Getenv("X")
client_secret: "${SECRET}"
secrets: inherit
password := ""
PASSWORD: <password>
password: '***'
password: ${PASSWORD}
token: ${{ secrets.GITHUB_TOKEN }}
export GITHUB_TOKEN=$(gh auth token)
export FOO_TOKEN="$BAR"
FOO_TOKEN=$BAR make test
"password": {"type": "string"}
"password": "string"
"token": null
type="password"
Idempotency-Key: 3f2c6e1a-8c5b-4c55-9a6b-0c6d1a2b3c4d
"idempotency_key": "3f2c6e1a8c5b4c559a6b0c6d1a2b3c4d"
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
X-Request-Id: 3f2c6e1a
primary_key = True
PRIMARY_KEY: id
foreign_key="user_id2"
SORT_KEY = "created_at"
CACHE_KEY = "users:list:v2"
cache-key: node-linux-abc123def456abc
options_key = options_key[3:]
my_key = s.register(sock1, selectors.EVENT_READ)
type_var_key = f"typevar={thing!r}"
ssl_key: /etc/ssl/key1.pem
monkey: banana12345
turkey = "a1b2c3d4e5f6g7"
max_tokens: 4096
MAX_TOKEN = 4096
"total_tokens": 123456
next_token = response["NextToken"]
EOS_TOKEN = "<eos>"
PAD_TOKEN = "[PAD]"
token_count = 12
headers = {"Authorization": f"Bearer {token}"}
r.headers['Authorization'] = 'JWT {jwt}'.format(jwt=token)
this._noAuthorization = !req.headers.authorization;
Authorization: Bearer $TOKEN
Authorization: Bearer ${TOKEN}
Authorization: required for all endpoints
The bearer of this letter, and bearer authentication, are no tokens.
credentials: "include"
credentials = standard_b64encode(credentials).decode('ascii')
auth: required
cookie: document.cookie
PASS: test_one
pass: 12, fail: 3
"password": ["This field is required."]
"password": ["required", "min:8"]
if password:
if token:
    return token_from_header2(request)
the auth_token test_version2_of_flow passes
delete the api key src/config/key2024.py
Created secret q5w8e7r6t5y4u3i2o1p0
the token 9fceb02d0ae598e95dc970b74767f19372d61af8 of the commit
- name: API_TOKEN
  value: from the environment
- name: DB_PASSWORD
  valueFrom:
find . -name 'login*' -print
find src/login -type f -printf '%p'
g++ x.cpp -lmysqlclient -pthread
git show HEAD:login.ts -pretty && playwright test login.spec.ts -project=chromium
pytest tests/login -p no:cacheprovider
docker compose -f login.yml -p myproject up
it is identified by 'customer_id' in the table
vault kv put -mount=secret foo ttl=30m
printf "%s" data | openssl dgst -stdin
docker run --name mongo -p 27017:27017 mongo:7
echo done | tee log; echo "$TOKEN" | docker login --password-stdin
unzip -p app.zip META-INF/MANIFEST.MF
7z x archive.7z
the user gave a password 'required' by the form
user anonymous, passwd anonymous@
DROP USER x; openssl rsa -passin env:PASS
vault kv put secret/x @file.json
first_pass = True
PWD=/home/dev/project
pwd = os.getcwd()
class="sk-estimator-doc-link"
sk-learn-compatible-estimator
task-management-of-long-names
x = 1//number_of_partitions_total
https://example.com:8080/path/@scope/pkg
https://user@example.com/x
git@github.com:org/repo.git
postgres://$USER:$PASS@host/db
https://{user}:{password}@host/
unpkg.com/react@18.2.0/umd/react.js
mailto:bob99@example.com, From:bob99@example.com, image:v1.2beta3@sha256:0a1b, npm:string-width2@4.1.0
npm:@scope/pkg@1.2.3
docker run -u 1000:1000 img && curl -sS localhost
mkdir -p /tmp/abc123 && mysql -P 3306
the .ssh directory and the .kube/ folder
~/.config/nvim/init.lua
use --password to set it; the --token flag is required
--api-key TOKEN
add_argument("--password", help="x")
the password is required. Every token is checked. The key is here.
- `FOO_TOKEN`: the token used for auth
- GITHUB_TOKEN: token with repo scope
A secret: `start` is where it begins
the header is `-----BEGIN PRIVATE KEY-----`, and then comes base64
the tag `<private>` hides what follows it, `</private>` ends that
Map<Token> tokens; Vec<Token>; std::map<Key, Token>
9fceb02d0ae598e95dc970b74767f19372d61af8
550e8400-e29b-41d4-a716-446655440000
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPmZ3Yx0b2Jm0aXyq9V bob@example.org
aa:bb:cc:dd:ee:ff 2001:db8::8a2e:370:7334 12:34:56.789
Ünïcödé, 日本語の文章, emoji 👩‍💻, non-breaking space, soft­hyphen
""".strip().split("\n")

# What secrets, and texts round them, are made of: joined at random they match, nearly match and overlap.
PARTS = [
    *SECRETS.values(),
    *(text for pair in ASSIGNED for text in pair),
    *("<private>", "</private>", "<PRIVATE a=b>", "<pri", "vate>", MARK, "[RED", "ACTED]", "[", "]"),
    *(
        "FOO_TOKEN=",
        "password: ",
        '"password": "',
        'api_key="',
        "\\",
        '"',
        "'",
        "`",
        "\n",
        "\\n",
        " ",
        ";",
        "&",
        "=",
        ":",
    ),
    *("Bearer ", "Authorization: ", "://", "@", "u:p@h", ".ssh/", "--password ", "sk-", "ghp_", "AKIA", "eyJ", "-----"),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN ", "abc", "A1b2C3d4", "hunter2", "is "),
    *("\ud800", "\udc00", "\x00", "\x1b[0m", "\u202e", "é", "日本", "👩‍💻", "İ", "\u2028"),
]
