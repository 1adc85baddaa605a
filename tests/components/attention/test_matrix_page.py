"""A map as a page of its own: its numbers, and labels that are no markup."""

import base64
import json
import re

import numpy as np

from components.matrix_page import make_matrix_page


def test_the_numbers_and_labels_can_be_read_back():
    cells = np.array([[0.25, np.float32(1) / 3, 0], [0.5, 0.125, 1e-30]], dtype=np.float32)
    labels = ["</script><b>", "a\nb"]
    page = make_matrix_page(
        cells, low=0, high=1, row_labels=labels, column_labels=(), title="<b> & more"
    )
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])
    found = np.frombuffer(base64.b64decode(facts["cells"]), "<f4").reshape(facts["shape"])
    assert np.array_equal(found, cells)
    assert facts["rows"] == labels
    assert facts["columns"] == ["0", "1", "2"]
    assert page.count("</script>") == 2
    assert "<title>&lt;b&gt; &amp; more</title>" in page
