// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// A key of each of three ends is shown in one line, whatever its error says: given up
// after its retries, given up for good, and tried again after a panic.
func TestDebugPageShowsWhatIsGivenUpAndWhatPanics(t *testing.T) {
	l := listen(t)
	m, err := manager.New(somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}),
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.Informer[*corev1.Pod](m)
	if err := m.Add(controller.New("breaking", func(_ context.Context, req controller.Request) (controller.Result, error) {
		switch req.Key.Name {
		case "good":
			return controller.Result{}, controller.Terminal(errors.New("never\tso\nand a second line"))
		case "bad":
			return controller.Result{}, errors.New("the oven is cold")
		}
		panic("burnt\nto ashes")
	},
		controller.For(pods),
		controller.Watches(pods, func(pod cache.Item[*corev1.Pod], add func(object.Key)) {
			if pod.Key().Name == "bad" {
				panic("no owner")
			}
			add(object.Key{Name: "mapped"})
		}),
		controller.Shows("operations", func(limit int) []string { return []string{fmt.Sprint("up to ", limit, " of them\nand more")} }),
		controller.MaxRetries(2), controller.RateLimit(&workqueue.Exponential[object.Key]{Base: time.Millisecond}))); err != nil {
		t.Fatal(err)
	}
	run(t, m)
	base := "http://" + l.Addr().String()
	for _, line := range []string{
		`, 3 given up, 4 panics$`,
		`^  ns/good +given up \S+ ago, failed 1 times +never so \.\.\.$`,
		`^  ns/bad +given up \S+ ago, failed 3 times +the oven is cold$`,
		`^  mapped +given up \S+ ago, failed 3 times +reconciling mapped: panic: burnt \.\.\.$`,
		`^  mapped +panic of the reconciler, 3 times, the last time \S+ ago +burnt \.\.\.$`,
		`^  ns/bad +panic of the mapping of pods, 1 times, the last time \S+ ago +no owner$`,
		`^  operations: up to 20 of them \.\.\.$`,
	} {
		page := ""
		waitFor(t, "the line "+line, func() bool {
			_, page = ask(t, base+"/debug/controllers", "")
			return regexp.MustCompile(`(?m)` + line).MatchString(page)
		})
	}
	code, text := ask(t, base+"/metrics", "")
	for _, want := range []string{
		`(?m)^setpoint_controller_given_up_total\{controller="breaking"\} 3$`,
		`(?m)^setpoint_controller_panics_total\{controller="breaking"\} 4$`,
	} {
		if code != http.StatusOK || !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("/metrics lacks %s: %d", want, code)
		}
	}
}

// What a key waits for, that it is wanted again and why, and who holds the lease.
func TestDebugPageShowsWhatKeysWaitForAndWhoHoldsTheLease(t *testing.T) {
	server := podServer(t)
	start := func(name string) (page func() string) {
		l := listen(t)
		m, err := manager.New(server.Config(), manager.Serve(l, serving.Options{Plain: true}), manager.Instance(name),
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		c := controller.New("writer", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name != "a" {
				return controller.Result{}, nil
			}
			server.Of(podsResource).HoldWatches(true)
			_, err := client.For[*corev1.Pod](m.Client()).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "made"}})
			return controller.Result{After: time.Nanosecond}, err
		}, controller.For(pods))
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
		run(t, m)
		return func() string {
			_, text := ask(t, "http://"+l.Addr().String()+"/debug/controllers", "")
			return text
		}
	}
	shows := func(page func() string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			waitFor(t, "the line "+line, func() bool { return regexp.MustCompile(`(?m)` + line).MatchString(page()) })
		}
	}
	leader := start("first")
	shows(leader,
		`^lease \S+: this is first\S*, the holder is first\S* \(term \d+\)$`,
		`^  ns/a +waits for create of pods ns/made at \S+ to appear, since \S+, wanted again +pods Added ns/a$`)
	standby := start("second")
	shows(standby, `^lease \S+: this is second\S*, the holder is first\S* \(term \d+\)$`, `^second: standing by`, `^  keys that wait until this manager leads: [12]$`)
}

// As where a CustomResourceDefinition has not been made yet.
func TestAControllerWhoseKindIsNotThereSaysSoAndRunsWhenItIs(t *testing.T) {
	server := podServer(t)
	l := listen(t)
	m, err := manager.New(server.Config(), manager.Serve(l, serving.Options{Plain: true}),
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	worked, waited := make(chan object.Key, 10), make(chan object.Key, 10)
	note := func(to chan object.Key) controller.Reconciler {
		return func(_ context.Context, req controller.Request) (controller.Result, error) {
			to <- req.Key
			return controller.Result{}, nil
		}
	}
	for _, c := range []*controller.Controller{
		controller.New("waiting", note(waited), controller.For(cache.Informer[*corev1.ConfigMap](m))),
		controller.New("working", note(worked), controller.For(cache.Informer[*corev1.Pod](m))),
	} {
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	run(t, m)
	if key := <-worked; key.Name != "a" {
		t.Errorf("the other controller ran for %s", key)
	}
	line := regexp.MustCompile(`(?m)^  its informer of configmaps is not current: .*could not find the requested resource.*$`)
	page := func() string {
		_, text := ask(t, "http://"+l.Addr().String()+"/debug/controllers", "")
		return text
	}
	waitFor(t, "the page to say that the kind is not there", func() bool { return line.MatchString(page()) })
	if len(waited) > 0 {
		t.Error("it ran before it could")
	}

	maps := server.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
	if err := maps.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "late"}}); err != nil {
		t.Fatal(err)
	}
	if key := <-waited; key.Name != "late" {
		t.Errorf("it ran for %s", key)
	}
	waitFor(t, "the page to say so no more", func() bool { return !line.MatchString(page()) })
}
