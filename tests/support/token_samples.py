"""Texts of many scripts, with the tokens that real tokenizers count in them."""

import base64
import hashlib

# Bytes without a pattern, the same in every run.
_NOISE = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(24))

TEXTS: dict[str, str] = {
    "english": (
        "The ferry leaves the northern harbour at a quarter past seven, unless the fog is thick. "
        "Passengers who carry bicycles wait beside the second gangway, and the crew loads them after "
        "everybody else has found a seat. On windy afternoons the crossing takes nearly an hour; in "
        "calm weather the captain sometimes manages it in forty minutes, which nobody believes until "
        "they have seen the lighthouse pass twice as quickly as it should."
    ),
    "german": (
        "Der Schlüssel zur Werkstatt hängt hinter der Tür, gleich neben dem Kalender. Wer zuletzt geht, "
        "schaltet die Lüftung aus und prüft, ob alle Fenster geschlossen sind. Rückfragen beantwortet "
        "die Geschäftsstelle von Montag bis Donnerstag zwischen neun und sechzehn Uhr."
    ),
    "russian": (
        "Поезд отправляется с третьего пути ровно в полдень. Пассажиры с большим багажом могут оставить "
        "его в первом вагоне, где дежурит проводник. Если погода испортится, остановка у реки "
        "отменяется, и всем придётся ехать до следующей станции, а оттуда возвращаться на автобусе."
    ),
    "chinese": (
        "渡轮每天早上七点一刻从北边的码头出发,如果有大雾就会推迟。带自行车的乘客请在第二个通道旁边等候,"
        "等其他人坐好以后,船员再把自行车搬上船。下午风大的时候,过海大约需要一个小时;天气好的话,四十分钟就能到达对岸。"
        "船上有热茶和简单的早餐,学生和老人可以半价购票,请提前准备好证件。"
    ),
    "japanese": (
        "フェリーは毎朝七時十五分に北の港を出発します。霧が濃い日は出発が遅れることがあります。自転車をお持ちの方は、"
        "二番目の乗り場の横でお待ちください。ほかのお客様が席に着いたあとで、乗組員が自転車を積み込みます。"
    ),
    "korean": (
        "여객선은 매일 아침 일곱 시 십오 분에 북쪽 항구에서 출발합니다. 안개가 짙은 날에는 출발이 늦어질 수 있습니다. "
        "자전거를 가지고 오신 분은 두 번째 승강장 옆에서 기다려 주시기 바랍니다."
    ),
    "arabic": (
        "تغادر العبارة الميناء الشمالي كل صباح في الساعة السابعة والربع، إلا إذا كان الضباب كثيفا. "
        "ينتظر الركاب الذين يحملون دراجات بجانب الممر الثاني حتى يجلس الجميع في أماكنهم."
    ),
    "hindi": (
        "नाव हर सुबह सवा सात बजे उत्तरी बंदरगाह से निकलती है, जब तक कि कोहरा घना न हो। साइकिल वाले यात्री दूसरे "
        "रास्ते के पास प्रतीक्षा करते हैं और बाकी सब के बैठने के बाद चढ़ते हैं।"
    ),
    "emoji": "🎉🚀✨ Done! 👍🏽 👩‍💻 🐍🔥🔥 ✅✅❌ 🤖💬 😀😃😄😁 🌍🌧️☀️ 🎈🎁 🏳️‍🌈 🚲🛳️🌊",
    "python": '''
def settle(self, account: Account, *, at: datetime | None = None) -> Balance:
    """Close every open position and return what is left."""
    total = Decimal("0.00")
    for position in self._positions.filter(account_id=account.pk):
        if position.closed_at is not None and position.amount <= 0:
            continue
        total += position.amount * self._rates.get(position.currency, 1)
        self._log.append({"id": position.pk, "closed": at or timezone.now()})
    return Balance(total=total, currency=account.currency)
''',
    "json": (
        '{"id":"msg_0a41","object":"list","data":[{"index":0,"score":0.9137,"labels":["red","green"]},'
        '{"index":1,"score":-12.5,"labels":[]},{"index":2,"score":1e-7,"labels":null}],"has_more":false,'
        '"usage":{"input_tokens":1204,"output_tokens":88,"total_tokens":1292}}'
    ),
    "shell": (
        "drwxr-xr-x  4 build build   4096 Mar 12 09:41 .\n-rw-r--r--  1 build build  18233 Mar 12 09:40 "
        "requirements.txt\n-rwxr-xr-x  1 build build    512 Feb 28 17:03 /usr/local/bin/start-server.sh\n"
        "ERROR 2031-03-12T09:41:07.112Z [worker-3] connect ECONNREFUSED 10.0.12.7:5432 (attempt 4 of 5)\n"
    ),
    "base64": base64.b64encode(_NOISE).decode(),
    "hex": _NOISE.hex()[:600],
    "digits": "".join(str(byte) for byte in _NOISE[:240]),
}
# As cl100k_base and o200k_base (OpenAI) and the tokenizer of Qwen count them.
COUNTS: dict[str, tuple[int, int, int]] = {
    "english": (85, 82, 85),
    "german": (77, 56, 75),
    "russian": (116, 76, 98),
    "chinese": (162, 115, 89),
    "japanese": (126, 85, 82),
    "korean": (98, 68, 73),
    "arabic": (113, 51, 57),
    "hindi": (169, 57, 158),
    "emoji": (83, 61, 54),
    "python": (121, 122, 122),
    "json": (87, 88, 96),
    "shell": (123, 123, 152),
    "base64": (732, 700, 752),
    "hex": (332, 334, 527),
    "digits": (208, 208, 624),
}
