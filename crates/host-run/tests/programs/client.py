"""Asks the server again and again: with requests if it is installed, else with the standard library."""
import random
import threading
import time

try:
    import requests

    def get(url):
        return requests.get(url, timeout=1).text
except ImportError:
    import urllib.request

    def get(url):
        return urllib.request.urlopen(url, timeout=1).read().decode()


def ask(thread):
    answered = 0
    while answered < 10:
        number = random.randrange(1000)
        try:
            text = get(f"http://server/{thread}/{number}")
            assert text.startswith(f"/{thread}/{number} "), text
            answered += 1
        except OSError as error:
            print(f"{thread}: {type(error).__name__}", flush=True)
        time.sleep(0.1)
    print(f"{thread}: done at {time.monotonic():.6f}, set {set('abcdefgh')}", flush=True)


threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", flush=True)
