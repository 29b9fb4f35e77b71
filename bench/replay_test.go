// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

func replayOf(t *testing.T, k *kind, n int) (r *replay, path string) {
	t.Helper()
	path, err := record(k, n, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := load(k, path)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = newReplay(recorded, n); err != nil {
		t.Fatal(err)
	}
	return r, path
}

func TestTapesAreTheSameEachTime(t *testing.T) {
	for _, k := range kinds {
		var all [2][]byte
		for i := range all {
			path, err := record(k, 100, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if all[i], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(all[0], all[1]) {
			t.Errorf("%s: recorded twice, the tapes differ", k.name)
		}
	}
}

func TestTapeRefusesToPlayMoreThanItHolds(t *testing.T) {
	r, _ := replayOf(t, podKind, 3)
	if _, err := newReplay(r.tape, 4); err == nil {
		t.Error("4 objects of a tape of 3: no error")
	}
}

// Both sides come to hold what the server holds: by a watch that begins with the
// state, by a list and a watch, after changes, and after their place in the
// history has been forgotten; over a socket and within the process.
func TestBothSidesReadWhatIsReplayed(t *testing.T) {
	const n = 150
	for _, k := range kinds {
		for _, side := range []string{setpointSide, clientGoSide} {
			for _, listsOnly := range []bool{false, true} {
				for _, local := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/lists only %t/within the process %t", k.name, side, listsOnly, local), func(t *testing.T) {
						t.Parallel()
						r, _ := replayOf(t, k, n)
						r.listsOnly = listsOnly
						s := &sideSpec{Side: side, Kind: k.name, Objects: n}
						if local {
							follow(t, s, r, within(r))
							return
						}
						err := serve(t.Context(), r, func(address string) error {
							s.Server = address
							from, err := s.server()
							if err == nil {
								follow(t, s, r, from)
							}
							return err
						})
						if err != nil {
							t.Fatal(err)
						}
					})
				}
			}
		}
	}
}

// follow runs an informer through a life and holds it against the server.
func follow(t *testing.T, s *sideSpec, r *replay, from *server) {
	var h handler
	i, err := newInformer(s, from, &h)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer i.stop()
	same := func(when string) {
		t.Helper()
		versions, _ := r.state()
		for n, want := range versions {
			key := object.KeyOf(r.tape.kind.make(n))
			o, err := i.get(key)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got := o.GetResourceVersion(); got != strconv.FormatUint(want, 10) {
				t.Fatalf("%s: %s has version %s, want %d", when, key, got, want)
			}
		}
		if got := i.walk(); got != len(versions) || len(i.keys()) != len(versions) {
			t.Fatalf("%s: %d objects, %d keys, want %d", when, got, len(i.keys()), len(versions))
		}
	}
	same("after the first list")
	h.decode.Store(true)
	if err := h.wait(t.Context(), r.publish(400)); err != nil {
		t.Fatal(err)
	}
	same("after changes")
	if err := relist(t.Context(), &sideSpec{Events: 60}, from, i, &h); err != nil {
		t.Fatal(err)
	}
	same("after a relist")
	selected, err := i.listSelected(labels.SelectorFromSet(labels.Set{"team": team}))
	if err != nil || selected == 0 || selected == s.Objects {
		t.Errorf("%d objects match, error %v; want some", selected, err)
	}
}

func TestListsAreServedInPages(t *testing.T) {
	const n, size = 25, 10
	r, _ := replayOf(t, podKind, n)
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "http://within.invalid", Transport: r,
		ContentConfig: rest.ContentConfig{ContentType: wire.Protobuf.MediaType()}})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	seen := map[object.Key]bool{}
	for options := (metav1.ListOptions{Limit: size}); ; {
		page, err := c.CoreV1().Pods("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page.Items))
		for _, p := range page.Items {
			seen[object.KeyOf(&p)] = true
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if fmt.Sprint(sizes) != "[10 10 5]" || len(seen) != n {
		t.Errorf("pages of %v with %d different Pods, want [10 10 5] with %d", sizes, len(seen), n)
	}
	ours, err := client.New(&rest.Config{Host: "http://within.invalid", Transport: r})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	meta, err := ours.List(t.Context(), podKind.resource, client.Selection{}, client.ListOptions{PageSize: size}, func(e wire.Encoding, raw []byte) error {
		count++
		return e.Decode(raw, &corev1.Pod{})
	})
	if err != nil || count != size || meta.Continue == "" {
		t.Errorf("Setpoint's client reads a page of %d that goes on at %q, error %v; want %d", count, meta.Continue, err, size)
	}
	// The watch cache of a real server does not page what may be of any version.
	all, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: size, ResourceVersion: "0"})
	if err != nil || len(all.Items) != n {
		t.Errorf("a list at version 0 has %d Pods, error %v; want all %d", len(all.Items), err, n)
	}
}
