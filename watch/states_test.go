// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

func keeping(t testing.TB, path string) *journal.Journal {
	t.Helper()
	j, damage, err := journal.Open(path, journal.Options{States: true})
	if err != nil || damage != nil {
		t.Fatal(err, damage)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// run runs a watch with a journal in a file, and returns what waits in it for the sink after that.
func runOnce(t *testing.T, api *fakeapi.Server, path string, hide ...observe.Rule) []*event.Event {
	t.Helper()
	j := keeping(t, path)
	defer func() { _ = j.Close() }()
	b := newBubble(t, api, silent{})
	if err := b.run(Options{Kinds: []string{"configmaps", "secrets"}, Journal: j, Route: toBook, Hide: hide}, func() { passes(5 * time.Second) }); err != nil {
		t.Error(err)
	}
	entries, err := j.Next("book", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var events []*event.Event
	for _, entry := range entries {
		e, err := event.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		if err := j.Ack("book", entry.Seq); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

var secrets = object.Resource{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true}

func aSecret(name, password string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{"password": []byte(password), "user": []byte("ann")}}
}

// change writes an object as a client does.
func change(t *testing.T, of *fakeapi.Resource, o metav1.Object) {
	t.Helper()
	o.SetUID(of.UID(object.Key{Namespace: o.GetNamespace(), Name: o.GetName()}))
	if err := of.Put(o); err != nil {
		t.Fatal(err)
	}
}

// With states in the cursor, what happened while the watch did not run has its fields: by the steps
// that the server remembers, and by comparing where it does not.
func TestTheFirstChangeAfterARestartHasItsFields(t *testing.T) {
	for _, remembers := range []bool{true, false} {
		t.Run(fmt.Sprintf("the server remembers the steps: %t", remembers), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cursor")
			synctest.Test(t, func(t *testing.T) {
				api := fakeapi.New()
				maps, hidden := api.Serve(configMaps), api.Serve(secrets)
				add(t, maps, aMap("changes"), aMap("goes"), aMap("stays"))
				add(t, hidden, aSecret("login", "canary-one"), aSecret("same", "canary-same"))
				if first := runOnce(t, api, path); len(first) != 0 {
					t.Fatalf("the first run published %q", linesOf(first))
				}
				changed := aMap("changes")
				changed.Data["x"] = "2"
				change(t, maps, changed)
				changed.Data["y"] = "3"
				change(t, maps, changed)
				change(t, hidden, aSecret("login", "canary-two"))
				same := aSecret("same", "canary-same")
				same.Labels = map[string]string{"tier": "web"}
				change(t, hidden, same)
				maps.Remove(object.Key{Namespace: "shop", Name: "goes"})
				if !remembers {
					api.Compact(api.ResourceVersion())
				}
				seen := map[string]string{}
				for _, e := range runOnce(t, api, path) {
					var fields []string
					for _, f := range e.Fields {
						if f.Path == "metadata.creationTimestamp" { // the server in memory sets it anew
							continue
						}
						text := f.Path
						if !f.Hidden {
							text += fmt.Sprintf(" %v→%v", f.From, f.To)
						}
						fields = append(fields, text)
					}
					if !e.Missed {
						t.Errorf("%s is not marked as missed", e.Key)
					}
					seen[e.Key.Name] += fmt.Sprintf("%s %s;", e.Verb, strings.Join(fields, ", "))
				}
				want := map[string]string{
					"changes": "updated data.x 1→2;updated data.y <nil>→3;",
					"goes":    "deleted ;",
					"login":   "updated data.password;",
					"same":    "updated metadata.labels <nil>→map[tier:web];",
				}
				if !remembers {
					want["changes"] = "updated data.x 1→2, data.y <nil>→3;"
				}
				if !reflect.DeepEqual(seen, want) {
					t.Errorf("published %v, want %v", seen, want)
				}
			})
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"canary", "Y2FuYXJ5", "Y2FuYXJ5LW9uZQ"} { // in base64, too
				if bytes.Contains(data, []byte(value)) {
					t.Errorf("the file has %q, a value of a Secret", value)
				}
			}
		})
	}
}

// A state that was kept under other rules may show what is hidden now.
func TestAStateThatWasKeptUnderOtherRulesIsNotUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cursor")
	rule, err := observe.ParseRule("configmaps:data.x")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		api.Serve(secrets)
		runOnce(t, api, path)
		changed := aMap("prices")
		changed.Data["x"] = "2"
		change(t, maps, changed)
		events := runOnce(t, api, path, rule)
		if len(events) != 1 || len(events[0].Fields) != 0 {
			t.Errorf("published %q, want one event without fields", linesOf(events))
		}
	})
}

func statesOf(t testing.TB) *states {
	t.Helper()
	s, err := openStates(keeping(t, filepath.Join(t.TempDir(), "cursor")), "pods", [4]byte{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pod is the state of a Pod of a Deployment as a server sends it, with managedFields.
func pod(i int) tree {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", i%20), Name: fmt.Sprintf("web-7c6fd5b9c4-%05d", i), UID: types.UID(fmt.Sprintf("6f1c0e2a-5b7d-4e2f-9a3c-%012d", i*7919)),
			ResourceVersion: fmt.Sprint(100000 + i), Labels: map[string]string{"app": fmt.Sprintf("web-%d", i%50), "pod-template-hash": "7c6fd5b9c4"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7c6fd5b9c4", UID: types.UID(fmt.Sprintf("0e8f8f8e-7c5f-4a57-9d3e-%012d", i%50))}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{}}}}}`)},
				{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}},"f:containerStatuses":{},"f:phase":{},"f:podIP":{}}}`)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%100), ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/shop/web:1.29", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}}, Env: []corev1.EnvVar{{Name: "LOG", Value: "info"}, {Name: "SHARD", Value: fmt.Sprint(i % 16)}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i%4, i/250%250, i%250), HostIP: "192.168.0.1",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: "True", LastTransitionTime: metav1.Unix(1767000000+int64(i), 0)},
				{Type: corev1.ContainersReady, Status: "True", LastTransitionTime: metav1.Unix(1767000000+int64(i), 0)},
				{Type: corev1.PodScheduled, Status: "True", LastTransitionTime: metav1.Unix(1766999990+int64(i), 0)},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true, Image: "registry.example.com/shop/web:1.29", ContainerID: fmt.Sprintf("containerd://%064x", i*104729)}},
		},
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	var content tree
	if err := json.Unmarshal(text, &content); err != nil {
		panic(err)
	}
	return content
}

func TestStatesAreDecodedAsTheyWereEncoded(t *testing.T) {
	s := statesOf(t)
	var encoded []string
	for i := range 200 {
		text, err := s.encode(pod(i))
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, text)
	}
	if s.dictionary == nil || encoded[0][0] != plainState || encoded[199][0] != dictionaryForm {
		t.Fatal("there is no dictionary after 200 Pods")
	}
	again, err := openStates(s.journal, s.selection, s.rules)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range encoded {
		state, err := again.decode(text)
		want, _ := json.Marshal(pod(i))
		if got, _ := json.Marshal(state); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("state %d is %s, %v; want %s", i, got, err, want)
		}
	}
	if large, err := s.encode(tree{"x": strings.Repeat("x", mostState)}); large != "" || err != nil {
		t.Errorf("a state that is too large has %d bytes, %v", len(large), err)
	}
}

// Whatever is in a file, a state is one or an error.
func FuzzDecodeState(f *testing.F) {
	s := statesOf(f)
	for i := range 100 {
		text, err := s.encode(pod(i))
		if err != nil {
			f.Fatal(err)
		}
		if i%30 == 0 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if state, err := s.decode(text); state != nil && err != nil {
			t.Error("a state and an error")
		}
	})
}

// What a state costs, for docs/watch-journal.md: bytes in the file for each of 10,000 Pods, and the
// time of a change that is noted, with states and without.
func BenchmarkStates(b *testing.B) {
	const pods = 10_000
	kind := event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	all := make([]tree, pods)
	for i := range all {
		all[i] = pod(i)
	}
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept=%t", kept), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "cursor")
			j, _, err := journal.Open(path, journal.Options{States: kept})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = j.Close() }()
			o := observe.New(observe.Options{Kind: kind})
			s, err := openStates(j, "pods", o.RulesDigest())
			if err != nil {
				b.Fatal(err)
			}
			f := &follower{watch: &Watch{cursor: cursor{j}}, observer: o, kept: s}
			var batch journal.Batch
			note := func(i int) {
				key := object.Key{Namespace: fmt.Sprint(i % 20), Name: fmt.Sprint(i)}
				batch.Seen("pods", key, journal.Seen{UID: "u", Version: "1", Digest: f.watch.cursor.digest(all[i]), State: f.encoded(all[i])})
			}
			for first := range slices.Chunk(slices.Collect(seq(pods)), 500) {
				batch.Reset()
				for _, i := range first {
					note(i)
				}
				if err := j.Commit(&batch); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if i%500 == 0 {
					batch.Reset()
				}
				note(i % pods)
			}
			b.ReportMetric(float64(info.Size())/pods, "bytes/pod")
		})
	}
}

func seq(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
