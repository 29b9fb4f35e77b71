// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// wrongTransforms are transforms that a cache must not follow.
var wrongTransforms = map[string]func(o crclient.Object) (any, error){
	"the name":            func(o crclient.Object) (any, error) { o.SetName("z"); return o, nil },
	"the namespace":       func(o crclient.Object) (any, error) { o.SetNamespace("team-z"); return o, nil },
	"the UID":             func(o crclient.Object) (any, error) { o.SetUID("z"); return o, nil },
	"the resourceVersion": func(o crclient.Object) (any, error) { o.SetResourceVersion("1000000"); return o, nil },
	"the type":            func(crclient.Object) (any, error) { return &corev1.Node{}, nil },
	"into nothing":        func(crclient.Object) (any, error) { return nil, nil },
	"and fails":           func(crclient.Object) (any, error) { return nil, errors.New("no such thing") },
	"and panics":          func(crclient.Object) (any, error) { panic("no such thing") },
}

// wrongNow transforms an object wrongly while it has an annotation, and gives it a mark otherwise.
func wrongNow(wrong func(crclient.Object) (any, error)) func(any) (any, error) {
	return func(o any) (any, error) {
		if object := o.(crclient.Object); object.GetAnnotations()["wrong"] != "" {
			return wrong(object)
		}
		o.(crclient.Object).SetLabels(map[string]string{"state": o.(crclient.Object).GetAnnotations()["state"]})
		return o, nil
	}
}

func annotated(keysAndValues ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{}
		for i := 0; i < len(keysAndValues); i += 2 {
			p.Annotations[keysAndValues[i]] = keysAndValues[i+1]
		}
	}
}

// A cache that follows such a transform has an object twice, or never sees its deletion.
func TestTheLastGoodStateStaysWhenATransformChanges(t *testing.T) {
	for change, wrong := range wrongTransforms {
		for i, sample := range views() {
			t.Run(fmt.Sprintf("%s, %T", change, sample), func(t *testing.T) {
				inWorld(t, crcache.Options{DefaultTransform: wrongNow(wrong)}, func(t *testing.T, w *world) {
					logged.keep(t)
					w.pod(t, "team-a", "a", annotated("state", "one"))
					w.pod(t, "team-a", "never", annotated("wrong", "from the beginning"))
					var got events
					if _, err := w.informer(t, sample).AddEventHandler(&got); err != nil {
						t.Fatal(err)
					}
					defer w.start(t)()
					check := func(when, events, state string) {
						t.Helper()
						if heard := got.was(); heard != events {
							t.Errorf("%s, the handler got %q, want %q", when, heard, events)
						}
						o, list := views()[i], lists()[i]
						err := w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, o)
						if state == "" {
							if !apierrors.IsNotFound(err) {
								t.Errorf("%s, Get: %v", when, err)
							}
							return
						}
						if err != nil || o.GetLabels()["state"] != state {
							t.Errorf("%s, the state is %v, want %s; %v", when, o.GetLabels(), state, err)
						}
						if err := w.cache.List(soon(t), list); err != nil || firstOf(list).GetName() != "a" || firstOf(list).GetLabels()["state"] != state {
							t.Errorf("%s, the list has %v, %v", when, list, err)
						}
						err = w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: "z"}, o)
						if elsewhere := w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-z", Name: "a"}, o); !apierrors.IsNotFound(err) || !apierrors.IsNotFound(elsewhere) {
							t.Errorf("%s, the cache has an object that the server does not have: %v, %v", when, err, elsewhere)
						}
					}
					check("first", "initial a", "one")
					w.pod(t, "team-a", "a", annotated("state", "two", "wrong", "yes"))
					check("after a change", "", "one")
					if !logged.has("team-a/a") || !logged.has("team-a/never") {
						t.Errorf("the log does not name the objects:\n%s", logged)
					}
					w.pod(t, "team-a", "b", annotated("state", "b"))
					w.removePod("team-a", "b")
					check("another object is not held up", "add b, delete b", "one")
					w.pod(t, "team-a", "a", annotated("state", "three"))
					check("when the transform is right again", "update a", "three")
					w.pod(t, "team-a", "a", annotated("wrong", "yes"))
					w.removePod("team-a", "a")
					check("deleted in a state that the cache could not transform", "delete tombstone team-a/a", "")
				})
			})
		}
	}
}
