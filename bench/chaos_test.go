// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/chaostest"
	"github.com/setpoint-io/setpoint/internal/fakechaos"
	"github.com/setpoint-io/setpoint/object"
)

// chaosNames is how many objects there can be.
const chaosNames = 300

// runningCandidate is a candidate that can be stopped.
type runningCandidate interface {
	fakechaos.Candidate
	Stop() error
}

// The days that a server can have. On the first, it keeps to what its documentation
// says of watches, however badly it goes; on the second it also repeats itself in
// them and sends what nobody asked for or can read.
var chaosDays = []struct {
	name    string
	without []fakechaos.Fault
}{
	{"as documented", []fakechaos.Fault{fakechaos.Replay, fakechaos.Repeat, fakechaos.Foreign, fakechaos.Garbled}},
	{"all faults", nil},
}

// TestChaos holds Setpoint's informers and client-go's against the same campaigns in
// turn and tells how they did. It is a measurement and fails for no breach; that
// Setpoint's informers have none is for the tests of package cache.
func TestChaos(t *testing.T) {
	events, seed := chaosNumber(t, chaosEvents, 2_000), chaosNumber(t, chaosSeed, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d %s=%d", chaosEvents, events, chaosSeed, seed)
	for _, kind := range []fakechaos.Kind{fakechaos.Pods, fakechaos.Widgets} {
		for _, day := range chaosDays {
			for _, candidate := range []string{"setpoint", "client-go"} {
				t.Run(kind.Resource.Plural+"/"+day.name+"/"+candidate, func(t *testing.T) {
					o := fakechaos.Options{Kind: kind, Seed: seed, Names: chaosNames, Without: day.without}
					began := time.Now()
					report := campaign(t, candidate, o, events)
					_, _ = fmt.Fprintf(t.Output(), "%s took %s\n%s\n\n", t.Name(), time.Since(began).Round(time.Millisecond), report)
				})
			}
		}
	}
}

func campaign(t *testing.T, name string, o fakechaos.Options, events uint64) (report fakechaos.Report) {
	synctest.Test(t, func(t *testing.T) {
		server := fakechaos.New(o)
		defer server.Close()
		judge := fakechaos.NewJudge(server)
		candidate, frames, err := startCandidate(name, server, judge, o)
		if err != nil {
			t.Fatal(err)
		}
		if report, err = fakechaos.Run(server, judge, candidate, fakechaos.Pace{Events: int(events), Seed: o.Seed}); err != nil {
			t.Error(err)
		}
		if err := candidate.Stop(); err != nil {
			t.Error(err)
		}
		for _, stack := range chaostest.Left(frames) {
			t.Errorf("still running after everything was stopped:\n%s", stack)
		}
	})
	return report
}

// startCandidate also returns what the frames of the candidate's goroutines contain.
func startCandidate(name string, s *fakechaos.Server, j *fakechaos.Judge, o fakechaos.Options) (c runningCandidate, frames string, err error) {
	if name == "client-go" {
		c, err = startClientGo(s.Config(), j, o)
		return c, "client-go/tools/cache.(", err
	}
	how, err := client.New(s.Config())
	if err != nil {
		return nil, "", err
	}
	if o.Kind.Resource.Group == "" {
		c, err = startSetpoint[*corev1.Pod](how, j, o)
	} else {
		c, err = startSetpoint[*unstructured.Unstructured](how, j, o)
	}
	return c, "setpoint/cache.(", err
}

func startSetpoint[T object.Object](c *client.Client, j *fakechaos.Judge, o fakechaos.Options) (runningCandidate, error) {
	return chaostest.Start[T](c, j, chaosNames, o.Seed, cache.OfKind(o.Kind.Resource.GroupVersionKind()))
}

func chaosNumber(t *testing.T, name string, otherwise uint64) uint64 {
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("reading %s: %v; give a number", name, err)
	}
	return n
}
