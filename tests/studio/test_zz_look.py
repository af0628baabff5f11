from pathlib import Path
def test_look(scratch, open_page):
    page = open_page("#/lessons?pin='2.3&text=%3Cb%3E", viewport={"width": 1000, "height": 800}, theme="dark")
    page.wait_for_timeout(300)
    page.click(".menu summary")
    page.screenshot(path="/tmp/look-menu.png")
    with page.expect_download() as told: page.click("text=Picture (PNG)")
    told.value.save_as("/tmp/look.png")
    page = open_page("", viewport={"width": 1280, "height": 800}); page.wait_for_timeout(500); page.screenshot(path="/tmp/look-first.png", full_page=True)
