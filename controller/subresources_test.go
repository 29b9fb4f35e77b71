// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// subresources has the subresources that the server behind it lacks: Pods that can be scaled (by an
// annotation), bound (by a label) and evicted. It answers as an API server does.
type subresources struct {
	line *line
	lose bool // the answers
}

func (p subresources) RoundTrip(r *http.Request) (*http.Response, error) {
	at, part := r.URL.Path[:strings.LastIndex(r.URL.Path, "/")], r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	send := func(method, body string) (*http.Response, error) {
		inner, err := http.NewRequestWithContext(r.Context(), method, "http://in-memory"+at, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		inner.Header.Set("Content-Type", "application/merge-patch+json")
		return p.line.RoundTrip(inner)
	}
	var answer *http.Response
	var raw []byte
	var err error
	body := `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	switch part {
	case "eviction":
		answer, err = send(http.MethodDelete, "")
	case "binding":
		answer, err = send(http.MethodPatch, `{"metadata":{"labels":{"a":"b"}}}`)
	case "scale":
		answer, err = send(http.MethodPatch, `{"metadata":{"labels":{"a":"b"}}}`)
		body = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"namespace":"ns","name":"target","resourceVersion":"%s"}}`
	default:
		return p.line.RoundTrip(r)
	}
	if err == nil {
		raw, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err != nil || p.lose {
		return nil, errBroken
	}
	if part == "scale" {
		_, after, _ := strings.Cut(string(raw), `"resourceVersion":"`)
		version, _, _ := strings.Cut(after, `"`)
		body = fmt.Sprintf(body, version)
	}
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	answer.Header = http.Header{"Content-Type": {"application/json"}}
	return answer, nil
}

// A write to a subresource is waited for as one of the object that it changes.
func TestKeyIsHeldUntilTheInformerShowsWhatASubresourceChanged(t *testing.T) {
	target := key("target")
	labelled := func(b *bubble) bool { o, err := b.pods.Get(target); return err == nil && o.Labels["a"] == "b" }
	for _, c := range []struct {
		name    string
		write   func(context.Context, client.Typed[*corev1.Pod]) error
		seen    func(*bubble) bool
		waiting string
	}{
		{"scale", func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := client.Sub[*autoscalingv1.Scale](p, "scale").Update(ctx, target, &autoscalingv1.Scale{})
			return err
		}, labelled, "update of pods ns/target at 4 to appear"},
		{"binding", func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := client.Sub[*corev1.Binding](p, "binding").Create(ctx, target, &corev1.Binding{})
			return err
		}, labelled, "update of pods ns/target at 4 to appear"},
		{"eviction", func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := client.Sub[*policyv1.Eviction](p, "eviction").Create(ctx, target, &policyv1.Eviction{})
			return err
		}, func(b *bubble) bool { return !b.pods.Snapshot().Get(target).Exists() }, "delete of pods ns/target to appear"},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, answer lost %v", c.name, lost), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					b.add("target")
					synctest.Wait()
					through, err := client.New(&rest.Config{Host: "http://in-memory", Transport: subresources{b.line, lost}})
					if err != nil {
						t.Fatal(err)
					}
					var saw bool
					w := b.writing(func(ctx context.Context, _ client.Typed[*corev1.Pod]) error {
						return c.write(ctx, client.For[*corev1.Pod](through))
					}, func() { saw = c.seen(b) })
					defer w.stop()
					time.Sleep(time.Second) // in which a lost answer is looked up
					synctest.Wait()
					if got := w.Waiting()[object.Key{Namespace: "ns", Name: "parent"}]; len(w.runs) != 1 || got != c.waiting {
						t.Fatalf("%d runs, waiting for %q, want %q (the write: %v)", len(w.runs), got, c.waiting, w.failed)
					}
					b.line.to().HoldWatches(false)
					synctest.Wait()
					if len(w.runs) < 2 || !saw || len(w.Waiting()) != 0 {
						t.Errorf("after the informer was told: %d runs, the last saw the write: %v, waiting for %v", len(w.runs), saw, w.Waiting())
					}
				})
			})
		}
	}
}
