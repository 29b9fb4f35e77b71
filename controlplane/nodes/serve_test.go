// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var logBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// playedNode is a simulation with one Node and one Pod, web, which is a minute old.
type playedNode struct {
	*kubeletServer
	node *corev1.Node
	pod  *corev1.Pod
}

func newPlayedNode() *playedNode {
	p := &playedNode{
		kubeletServer: &kubeletServer{store: newStore(), log: slog.New(slog.DiscardHandler), now: func() time.Time { return logBegin.Add(time.Minute) }},
		node:          &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0", UID: "node", ResourceVersion: "1", Labels: map[string]string{ManagedLabel: "true"}, Annotations: map[string]string{}}},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod", ResourceVersion: "1"},
			Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		},
	}
	p.store.putNode(p.node)
	p.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "web", Image: "nginx", ContainerID: "sim://1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(logBegin)}},
	}}
	p.change(func(*corev1.Pod) {})
	p.readiness(true, 50*time.Second)
	return p
}

// change brings a new version of the Pod, as a watch does.
func (p *playedNode) change(f func(*corev1.Pod)) {
	p.pod = p.pod.DeepCopy()
	p.pod.ResourceVersion += "0"
	f(p.pod)
	p.store.putPod(p.pod)
}

func (p *playedNode) readiness(ready bool, after time.Duration) {
	p.change(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].Ready = ready
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, LastTransitionTime: metav1.NewTime(logBegin.Add(after))}}
	})
}

func (p *playedNode) exit() {
	p.change(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, ContainerID: "sim://1", StartedAt: metav1.NewTime(logBegin), FinishedAt: metav1.NewTime(logBegin.Add(time.Hour)),
		}}
	})
}

func (p *playedNode) silence() {
	node := p.node.DeepCopy()
	node.ResourceVersion += "0"
	node.Annotations[NodeSwitch] = Silent
	p.store.putNode(node)
}

func (p *playedNode) ask(ctx context.Context, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, nil))
	return w
}

const (
	line1 = "created container web of pod shop/web on simulated node node-0\n"
	line2 = "started with image nginx\n"
	line3 = "ready\n"
)

func TestLogsAreThoseThatTheQueryAsksFor(t *testing.T) {
	stamp := "2026-01-01T00:00:00.000000000Z "
	for query, want := range map[string]string{
		"":                               line1 + line2 + line3,
		"tailLines=2":                    line2 + line3,
		"tailLines=0":                    "",
		"tailLines=100":                  line1 + line2 + line3,
		"sinceSeconds=30":                line3,
		"sinceSeconds=10":                line3,
		"sinceSeconds=9":                 "",
		"sinceSeconds=60":                line1 + line2 + line3,
		"sinceTime=2026-01-01T00:00:01Z": line3,
		"sinceTime=2026-01-01T00:00:50.9Z&tailLines=2": line3,
		"limitBytes=7":                 "created",
		"limitBytes=100000":            line1 + line2 + line3,
		"timestamps=true&tailLines=2":  stamp + line2 + "2026-01-01T00:00:50.000000000Z " + line3,
		"timestamps=true&limitBytes=4": "2026",
		"stream=Stdout&tailLines=1":    line3,
		"stream=Stderr":                "",
		"previous=false&tailLines=1":   line3,
		"unknown=x&tailLines=1":        line3,
	} {
		got := newPlayedNode().ask(t.Context(), http.MethodGet, "/containerLogs/shop/web/web?"+query)
		if got.Code != http.StatusOK || got.Body.String() != want {
			t.Errorf("%s: %d\n%s\nwant:\n%s", query, got.Code, got.Body, want)
		}
	}
}

func TestRequestsForLogsThatCannotBeMetSayWhy(t *testing.T) {
	for path, want := range map[string]string{
		"/containerLogs/shop/web/web?tailLines=-1":                                  `tailLines="-1": not a whole number of at least 0`,
		"/containerLogs/shop/web/web?limitBytes=0":                                  `limitBytes="0": not a whole number of at least 1`,
		"/containerLogs/shop/web/web?sinceSeconds=x":                                `sinceSeconds="x": not a whole number of at least 1`,
		"/containerLogs/shop/web/web?sinceTime=noon":                                `sinceTime="noon": not a time such as 2026-01-31T15:04:05Z`,
		"/containerLogs/shop/web/web?sinceTime=2026-01-01T00:00:00Z&sinceSeconds=1": "at most one of sinceTime and sinceSeconds can be given",
		"/containerLogs/shop/web/web?follow=perhaps":                                `follow="perhaps": neither true nor false`,
		"/containerLogs/shop/web/web?stream=Both":                                   `stream="Both": choose All, Stdout or Stderr`,
		"/containerLogs/shop/web/web?previous=true":                                 `previous terminated container "web" in pod "web" not found`,
		"/containerLogs/shop/web/sidecar":                                           `container "sidecar" in pod "web" is not available`,
		"/containerLogs/shop/db/web":                                                `pod "shop/db" does not exist on a simulated node`,
	} {
		got := newPlayedNode().ask(t.Context(), http.MethodGet, path)
		if text := strings.TrimSpace(got.Body.String()); got.Code != http.StatusBadRequest || text != want {
			t.Errorf("%s: %d %s, want %s", path, got.Code, text, want)
		}
	}
}

func TestNodesRefuseWhatNeedsAProcess(t *testing.T) {
	for path, command := range map[string]string{
		"/exec/shop/web/web?command=ls": "exec",
		"/exec/shop/web/uid/web":        "exec",
		"/attach/shop/web/web":          "attach",
		"/portForward/shop/web":         "port-forward",
	} {
		got := newPlayedNode().ask(t.Context(), http.MethodPost, path)
		want := fmt.Sprintf("node node-0 is simulated and runs no containers: kubectl %s is not possible", command)
		if got.Code != http.StatusNotImplemented || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, got.Code, got.Body, want)
		}
	}
}

func TestSilentNodeDoesNotAnswer(t *testing.T) {
	p := newPlayedNode()
	p.silence()
	for _, path := range []string{"/containerLogs/shop/web/web", "/exec/shop/web/web"} {
		got := p.ask(t.Context(), http.MethodGet, path)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "simulated node node-0 does not answer: annotation sim.setpoint.io/node=silent") {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// A log that is followed gets each line when it is there, and ends with its container,
// its Pod, its Node, or its reader.
func TestFollowedLogEndsWithItsContainer(t *testing.T) {
	all := line1 + line2 + line3
	for name, test := range map[string]struct {
		query string
		do    func(p *playedNode, leave context.CancelFunc)
		want  string
	}{
		"exit": {"", func(p *playedNode, _ context.CancelFunc) { p.exit() }, all + "exited with code 1\n"},
		"more lines, then exit": {"&tailLines=1", func(p *playedNode, _ context.CancelFunc) {
			p.readiness(false, time.Minute)
			synctest.Wait()
			p.readiness(true, time.Minute)
			synctest.Wait()
			p.exit()
		}, line3 + "not ready\nready\nexited with code 1\n"},
		"the limit":           {"&tailLines=0&limitBytes=3", func(p *playedNode, _ context.CancelFunc) { p.readiness(false, time.Minute) }, "not"},
		"deletion":            {"", func(p *playedNode, _ context.CancelFunc) { p.store.dropPod(p.pod) }, all},
		"missing in a list":   {"", func(p *playedNode, _ context.CancelFunc) { p.store.replacePods(nil) }, all},
		"another of its name": {"", func(p *playedNode, _ context.CancelFunc) { p.change(func(pod *corev1.Pod) { pod.UID = "other" }) }, all},
		"silence":             {"", func(p *playedNode, _ context.CancelFunc) { p.silence() }, all},
		"node deleted":        {"", func(p *playedNode, _ context.CancelFunc) { p.store.dropNode("node-0") }, all},
		"node not listed":     {"", func(p *playedNode, _ context.CancelFunc) { p.store.keepNodes(nil) }, all},
		"reader left":         {"", func(_ *playedNode, leave context.CancelFunc) { leave() }, all},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlayedNode()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var got *httptest.ResponseRecorder
				ended := false
				go func() {
					got = p.ask(ctx, http.MethodGet, "/containerLogs/shop/web/web?follow=true"+test.query)
					ended = true
				}()
				synctest.Wait()
				if ended {
					t.Fatal("the log ended before its container")
				}
				test.do(p, leave)
				synctest.Wait()
				if !ended {
					t.Fatal("the log does not end")
				}
				if got.Code != http.StatusOK || got.Body.String() != test.want {
					t.Errorf("%d\n%s\nwant:\n%s", got.Code, got.Body, test.want)
				}
			})
		})
	}
}

func TestFollowedLogWhoseOldLinesWereDroppedGoesOn(t *testing.T) {
	var out bytes.Buffer
	w := &logWriter{logRequest: logRequest{tail: -1, limit: -1}, out: &out}
	for i := range 3 {
		v := view{dropped: 10 * i, lines: []logLine{{text: fmt.Sprint("a", i)}, {text: fmt.Sprint("b", i)}}}
		if _, err := w.lines(v); err != nil {
			t.Fatal(err)
		}
	}
	if want := "a0\nb0\na1\nb1\na2\nb2\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// FuzzNodeServer sends any path and query: the server answers with parts of the log of
// the one container there is, or with an error of one line that a terminal can show.
func FuzzNodeServer(f *testing.F) {
	f.Add("/containerLogs/shop/web/web", "tailLines=2&timestamps=1&sinceSeconds=30")
	f.Add("/containerLogs/shop/web/web", "limitBytes=3&previous=true")
	f.Add("/containerLogs/shop/\x1b[2J/web", "sinceTime=%1b")
	f.Add("/containerLogs/shop/web/web", "sinceSeconds=9223372036854775807")
	f.Add("/exec/shop/web/web", "command=ls")
	f.Add("/portForward/..%2f/web", "")
	f.Add("//containerLogs/./shop/web", ";;")
	f.Fuzz(func(t *testing.T, path, query string) {
		p := newPlayedNode()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: path, RawQuery: query}
		w := httptest.NewRecorder()
		values := r.URL.Query()
		values.Del("follow") // it would wait for more
		r.URL.RawQuery = values.Encode()
		p.handler().ServeHTTP(w, r)

		body := w.Body.String()
		if w.Code == http.StatusOK {
			for line := range strings.Lines(body) {
				if values.Get("timestamps") == "" && values.Get("limitBytes") == "" && !strings.Contains(line1+line2+line3, line) {
					t.Errorf("%s?%s: a line of another log: %q", path, query, line)
				}
			}
			return
		}
		if w.Code < 300 || w.Code == http.StatusInternalServerError {
			t.Errorf("%s?%s: %d %q", path, query, w.Code, body)
		}
		if w.Code == http.StatusBadRequest && strings.ContainsFunc(strings.TrimSuffix(body, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s?%s: the error holds what a terminal would act on: %q", path, query, body)
		}
	})
}
