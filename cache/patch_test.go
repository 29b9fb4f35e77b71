// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// repatched writes a body as a patch of a base, and returns what the patch makes and its size.
func repatched(t testing.TB, p *patcher, base, body []byte) (made []byte, size int) {
	t.Helper()
	p.rebase(base)
	patch, ok := p.append(nil, body, 3*len(body)+100)
	if !ok {
		t.Fatalf("a patch of %d bytes for a body of %d", len(patch), len(body))
	}
	window, err := applyPatch(bytes.Clone(base), patch)
	if err != nil {
		t.Fatal(err)
	}
	return window[len(base):], len(patch)
}

func TestAPatchTakesWhatIsNew(t *testing.T) {
	base := strings.Repeat("what all of them have: ", 10) + "containerd://" + strings.Repeat("0123456789abcdef", 4) + " on node-7, as 10.1.2.3 " + strings.Repeat("and so on. ", 10)
	for name, c := range map[string]struct {
		body string
		most int
	}{
		"nothing is new":             {base, 6},
		"digits":                     {strings.Replace(base, "0123456789abcdef0123456789abcdef", "fedcba98765432100011223344556677", 1), 30},
		"an odd number of digits":    {strings.Replace(base, "0123456789abcdef0123456789abcdef", "fedcba9876543210001122334455667", 1), 31},
		"texts of another length":    {strings.NewReplacer("node-7", "node-1234", "10.1.2.3", "10.21.22.23").Replace(base), 40},
		"the same new text twice":    {base + "a text that is new" + base + "a text that is new", 50},
		"the base without its begin": {base[100:], 15},
		"the base without its end":   {base[:200], 10},
		"one letter":                 {"a", 5},
		"no letter":                  {"", 2},
	} {
		t.Run(name, func(t *testing.T) {
			made, size := repatched(t, new(patcher), []byte(base), []byte(c.body))
			if string(made) != c.body {
				t.Errorf("have %q, want %q", made, c.body)
			}
			if size > c.most {
				t.Errorf("%d bytes, want %d at most", size, c.most)
			}
		})
	}
}

func TestAPatchThatWouldBeTooLongIsNotWritten(t *testing.T) {
	var p patcher
	p.rebase([]byte(strings.Repeat("one thing ", 20)))
	if patch, ok := p.append(nil, []byte(strings.Repeat("QUITE ANOTHER: ", 1)), 10); ok {
		t.Errorf("a patch of %d bytes", len(patch))
	}
}

// A patcher has the table of bodies before, so bodies follow one another.
func TestAnyBodyIsWhatItsPatchMakes(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.Map(rapid.StringMatching(`[0-9a-f]{0,70}`), func(s string) []byte { return []byte(s) }),
		rapid.SampledFrom([][]byte{[]byte("registry.example.com/team/web"), []byte("kube-api-access-"), bytes.Repeat([]byte("x"), 100)}),
	)
	text := rapid.Map(rapid.SliceOfN(piece, 0, 12), func(pieces [][]byte) []byte { return bytes.Join(pieces, nil) })
	rapid.Check(t, func(t *rapid.T) {
		base := text.Draw(t, "base")
		var p patcher
		p.rebase(base)
		for range rapid.IntRange(1, 4).Draw(t, "bodies") {
			body := text.Draw(t, "body")
			if cut := rapid.IntRange(0, len(base)).Draw(t, "cut"); rapid.Bool().Draw(t, "alike") {
				body = append(bytes.Clone(base[:cut]), append(body, base[cut:]...)...)
			}
			patch, ok := p.append(nil, body, 3*len(body)+100)
			if !ok {
				t.Fatalf("no patch for %q", body)
			}
			window, err := applyPatch(bytes.Clone(base), patch)
			if err != nil || !bytes.Equal(window[len(base):], body) {
				t.Fatalf("have %q, %v; want %q", window, err, body)
			}
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte("what all of them have"), []byte("what one of them has"), []byte{})
	f.Add([]byte("base"), []byte{}, []byte{8, 4<<2 | opNext, 4<<2 | opCopy, 1})
	f.Add([]byte{}, []byte("0123456789abcdef"), []byte{16, 16<<2 | opDigits, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, base, body, patch []byte) {
		base, body = base[:min(len(base), patchMost)], body[:min(len(body), patchMost)]
		if made, _ := repatched(t, new(patcher), base, body); !bytes.Equal(made, body) {
			t.Errorf("have %q, want %q", made, body)
		}
		// Any other bytes are a patch of the size that they say, or an error.
		size, sizeErr := patchedSize(patch)
		window, err := applyPatch(bytes.Clone(base), patch)
		if err == nil && (sizeErr != nil || len(window) != len(base)+size || !bytes.HasPrefix(window, base)) {
			t.Errorf("a patch of %d bytes (%v) made %q of %q", size, sizeErr, window, base)
		}
	})
}
