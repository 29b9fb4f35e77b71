// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/documenttest"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// TestTheCheckInPythonTakesWhatIsSigned runs the function of the document, with a signature that is
// right and with others.
func TestTheCheckInPythonTakesWhatIsSigned(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	key, body := []byte("a key"), []byte(`{"verb":"created"}`)
	right := sink.Sign(key, time.Now(), body)
	const call = `
import sys
print(verify(sys.argv[1].encode(), sys.argv[2], sys.argv[3].encode()))
`
	for _, b := range documenttest.Blocks(t) {
		for _, test := range []struct{ name, key, header, body, want string }{
			{"right", string(key), right, string(body), "True"},
			{"right beside another one", string(key), strings.Replace(right, ",", ",v1=00,", 1), string(body), "True"},
			{"another key", "another", right, string(body), "False"},
			{"another body", string(key), right, string(body) + " ", "False"},
			{"an old one", string(key), sink.Sign(key, time.Now().Add(-time.Hour), body), string(body), "False"},
			{"no time", string(key), strings.TrimPrefix(right, "t="), string(body), "False"},
			{"nothing", string(key), "", string(body), "False"},
		} {
			t.Run(test.name, func(t *testing.T) {
				out, err := exec.CommandContext(t.Context(), python, "-c", b.Text+call, test.key, test.header, test.body).CombinedOutput()
				if got := strings.TrimSpace(string(out)); err != nil || got != test.want {
					t.Errorf("%s: verify says %s (%v), want %s", b, got, err, test.want)
				}
			})
		}
	}
}

// TestTheHeaderInTheDocumentIsThatOfASignature compares the name and the form of the header.
func TestTheHeaderInTheDocumentIsThatOfASignature(t *testing.T) {
	at := time.Unix(1777896000, 0)
	for _, b := range documenttest.Blocks(t) {
		value := sink.Sign([]byte("key"), at, []byte("body"))
		before, after, _ := strings.Cut(value, "v1=")
		if want, got := sink.SignatureHeader+": "+before+"v1=", b.Text; !strings.HasPrefix(got, want) || len(after) != 64 {
			t.Errorf("%s shows %q, want a header that begins with %q", b, got, want)
		}
	}
}
