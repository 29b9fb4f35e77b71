// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package handlername

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

type handler struct {
	cache.ResourceEventHandlerFuncs
}

// generic is a handler whose type has a parameter.
type generic[T any] struct {
	cache.ResourceEventHandlerFuncs
}

func added(any) {}

func (handler) deleted(any) {}

// The name is that of client-go, which its registrations have.
func TestAHandlerHasTheNameThatClientGoGivesIt(t *testing.T) {
	t.Parallel()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
	for what, h := range map[string]cache.ResourceEventHandler{
		"a type":                     handler{},
		"a pointer":                  &handler{},
		"a generic type":             generic[int]{},
		"a type without a name":      struct{ handler }{},
		"a detailed handler":         cache.ResourceEventHandlerDetailedFuncs{},
		"a filter":                   &cache.FilteringResourceEventHandler{Handler: handler{}},
		"no functions":               cache.ResourceEventHandlerFuncs{},
		"a function":                 cache.ResourceEventHandlerFuncs{AddFunc: added},
		"functions of one place":     cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}, DeleteFunc: func(any) {}},
		"functions of two places":    cache.ResourceEventHandlerFuncs{AddFunc: added, DeleteFunc: handler{}.deleted},
		"a pointer to its functions": &cache.ResourceEventHandlerFuncs{DeleteFunc: handler{}.deleted},
	} {
		registration, err := informer.AddEventHandler(h)
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(registration.HasSyncedChecker().Name(), " + event handler ")
		if got := Of(h); got != want || want == "" {
			t.Errorf("%s: have %q, client-go has %q", what, got, want)
		}
	}
	if got := Of(nil); got != "<nil>" {
		t.Errorf("no handler is %q", got)
	}
}
