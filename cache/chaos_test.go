// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
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

// chaosNumber reads a number from the environment, for longer campaigns and to
// repeat one.
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

func TestChaosWithPodsOverProtobuf(t *testing.T) {
	chaos[*corev1.Pod](t, fakechaos.Pods)
}

func TestChaosWithACustomKindOverJSON(t *testing.T) {
	chaos[*unstructured.Unstructured](t, fakechaos.Widgets)
}

// A server does its worst for SETPOINT_CHAOS_EVENTS changes; SETPOINT_CHAOS_SEED
// repeats a history and its faults.
func chaos[T object.Object](t *testing.T, kind fakechaos.Kind) {
	const names = 300
	events := chaosNumber(t, "SETPOINT_CHAOS_EVENTS", 10_000)
	seed := chaosNumber(t, "SETPOINT_CHAOS_SEED", uint64(time.Now().UnixNano()))
	t.Logf("SETPOINT_CHAOS_EVENTS=%d SETPOINT_CHAOS_SEED=%d", events, seed)
	synctest.Test(t, func(t *testing.T) {
		server := fakechaos.New(fakechaos.Options{Kind: kind, Seed: seed, Names: names})
		defer server.Close()
		c, err := client.New(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		judge := fakechaos.NewJudge(server)
		informers, err := chaostest.Start[T](c, judge, names, seed, cache.OfKind(kind.Resource.GroupVersionKind()))
		if err != nil {
			t.Fatal(err)
		}
		report, err := fakechaos.Run(server, judge, informers, fakechaos.Pace{Events: int(events), Seed: seed})
		if err != nil {
			t.Error(err)
		}
		if err := informers.Stop(); err != nil {
			t.Error(err)
		}
		for _, stack := range chaostest.Left("setpoint/cache.(") {
			t.Errorf("still running after the informers were stopped:\n%s", stack)
		}
		t.Log(report)
		if len(report.Breaches) > 0 || report.Equal != report.QuietPoints {
			t.Error("the informers broke their promises, see above")
		}
	})
}
