// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

func TestALineSaysWhatHappened(t *testing.T) {
	settled, changed := made(1), made(2)
	settled.Verb, settled.Summary = event.Settled, "12 changes in 8s, now 10/10 ready"
	changed.Verb = event.Updated
	for _, path := range []string{"a", "b", "c", "d", "e"} {
		changed.Fields = append(changed.Fields, event.Field{Path: path})
	}
	var out strings.Builder
	s, err := sink.New(t.Context(), "term", sink.Options{Terminal: &sink.Terminal{}}, sink.Deps{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Send(t.Context(), []*event.Event{settled, changed, made(3)}); r.Done != 3 {
		t.Fatalf("%+v", r)
	}
	const want = `pods team-a/web-1 settled: 12 changes in 8s, now 10/10 ready
pods team-a/web-2 updated: a, b, c and 2 more
pods team-a/web-3 created
`
	if out.String() != want {
		t.Error(out.String())
	}
}
