// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
	"github.com/setpoint-io/setpoint/watch/sink"
)

func TestATerminalWritesEveryForm(t *testing.T) {
	settled := made(1)
	settled.Verb, settled.Summary = event.Settled, "12 changes in 8s, now 10/10 ready"
	for _, form := range format.Forms() {
		var out strings.Builder
		s, err := sink.New("term", sink.Options{Terminal: &sink.Terminal{Form: string(form)}}, sink.Deps{Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Send(t.Context(), []*event.Event{settled}); r.Done != 1 {
			t.Fatalf("%s: %+v", form, r)
		}
		if !strings.Contains(out.String(), settled.Summary) || !strings.HasSuffix(out.String(), "\n") {
			t.Errorf("%s: %q", form, out.String())
		}
	}
}
