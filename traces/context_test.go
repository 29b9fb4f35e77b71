// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/traces"
)

const (
	otherTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	otherSpan  = "00f067aa0ba902b7"
)

// The traceparent that objects carry is that of the span of the run that created them.
func TestTheTraceContextOfARunIsThatOfItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{Annotations: true})
		loop := s.record.Loop("deployment", "apps", "Deployment")
		s.addRuns(3) // a run that has begun before these ends after them
		number, traceparent := loop.Context()
		s.addRuns(2)
		runs.Add(loop, web, &runs.Ended{Began: time.Now(), Outcome: runs.Done, Number: number, Writes: []runs.Write{{Verb: "create", Object: set, Version: "1"}}})
		time.Sleep(traces.DefaultDelay)
		synctest.Wait()
		for _, span := range s.to.spans() {
			own := fmt.Sprintf("00-%x-%x-01", span.TraceId, span.SpanId) == traceparent
			if own != (len(span.Events) == 1) {
				t.Errorf("the traceparent is %q, the span of run %s has %d events", traceparent, textOf(span.Attributes, "setpoint.run"), len(span.Events))
			}
		}
		if stats := s.record.Stats(); stats.Runs != 6 || number != 4 {
			t.Errorf("%d runs are recorded, the one with a context has the number %d; want 6 and 4", stats.Runs, number)
		}
		if found, _, ok := s.record.Wrote(set, "1"); !ok || found.Number != number {
			t.Errorf("the run that wrote has the number %d, want %d", found.Number, number)
		}
	})
}

// A span links once to each trace context of the objects that its run is about. A text that is no traceparent gives no link.
func TestASpanLinksToTheContextsOfItsObjects(t *testing.T) {
	of := "00-" + otherTrace + "-" + otherSpan + "-"
	for name, c := range map[string]struct {
		contexts []string
		links    int
	}{
		"one":                       {[]string{of + "01"}, 1},
		"twice":                     {[]string{of + "01", of + "03"}, 1},
		"of a later version":        {[]string{strings.Replace(of, "00", "cc", 1) + "01-more"}, 1},
		"whose span is not kept":    {[]string{of + "00"}, 0},
		"empty":                     {[]string{""}, 0},
		"of no version":             {[]string{strings.Replace(of, "00", "ff", 1) + "01"}, 0},
		"in upper case":             {[]string{strings.ToUpper(of) + "01"}, 0},
		"of another length":         {[]string{of + "01-more"}, 0},
		"of a later, longer number": {[]string{strings.Replace(of, "00", "cc", 1) + "011"}, 0},
		"no number":                 {[]string{strings.Replace(of, "4b", "zz", 1) + "01"}, 0},
		"without a trace":           {[]string{"00-" + strings.Repeat("0", 32) + "-" + otherSpan + "-01"}, 0},
		"without a span":            {[]string{"00-" + otherTrace + "-" + strings.Repeat("0", 16) + "-01"}, 0},
		"hostile":                   {[]string{"<script>\x1b[31m" + strings.Repeat("x", 1<<16)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, traces.Config{Annotations: true})
				runs.Add(s.record.Loop("deployment", "apps", "Deployment"), web, &runs.Ended{Began: time.Now(), Outcome: runs.Done, Contexts: c.contexts})
				time.Sleep(traces.DefaultDelay)
				synctest.Wait()
				links := s.to.spans()[0].Links
				if len(links) != c.links {
					t.Fatalf("the links are %v, want %d", links, c.links)
				}
				for _, link := range links {
					if hex.EncodeToString(link.TraceId) != otherTrace || hex.EncodeToString(link.SpanId) != otherSpan || textOf(link.Attributes, "setpoint.context") == "" {
						t.Errorf("the link is %v", link)
					}
				}
			})
		})
	}
}

// The record and the annotation of an object lead to the same run, which gets one link.
func TestARunOfTheSameManagerIsLinkedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{Annotations: true})
		loop := s.record.Loop("deployment", "apps", "Deployment")
		number, traceparent := loop.Context()
		runs.Add(loop, web, &runs.Ended{Began: time.Now(), Outcome: runs.Done, Number: number, Writes: []runs.Write{{Verb: "create", Object: set, Version: "4711"}}})
		runs.Add(s.record.Loop("replicaset", "apps", "ReplicaSet"), setKey, &runs.Ended{Began: time.Now(), Outcome: runs.Done,
			Causes: causesOf(t, set, "4711"), Contexts: []string{traceparent}})
		time.Sleep(traces.DefaultDelay)
		synctest.Wait()
		var links []*trace.Span_Link
		for _, span := range s.to.spans() {
			links = append(links, span.Links...)
		}
		if len(links) != 1 || textOf(links[0].Attributes, "setpoint.cause") == "" {
			t.Errorf("the links are %v, want the one of the record", links)
		}
	})
}

// Without the option, runs carry no context.
func TestRunsCarryNoContextUnlessTheUserSwitchesItOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{})
		loop := s.record.Loop("deployment", "apps", "Deployment")
		if number, traceparent := loop.Context(); loop.Propagates() || number != 0 || traceparent != "" {
			t.Errorf("run %d carries %q", number, traceparent)
		}
	})
	for text, want := range map[string]bool{"": false, "false": false, "true": true, "True": true} {
		config, err := traces.FromEnvironment(environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "SETPOINT_TRACE_ANNOTATIONS": text}), "setpoint")
		if err != nil || config.Annotations != want {
			t.Errorf("SETPOINT_TRACE_ANNOTATIONS=%q: %+v, %v", text, config, err)
		}
	}
}
