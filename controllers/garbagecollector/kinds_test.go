// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// things and rooms are custom kinds that are there for all tests.
func things(t *testing.T) object.Resource {
	t.Helper()
	return define(t, object.Resource{Group: "gc.example.org", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true})
}

func rooms(t *testing.T) object.Resource {
	t.Helper()
	return define(t, object.Resource{Group: "gc.example.org", Version: "v1", Plural: "rooms", Kind: "Room"})
}

// define has the server serve a custom kind, unless it does.
func define(t *testing.T, r object.Resource) object.Resource {
	t.Helper()
	shared.Get(t).Define(t, r)
	return r
}

// redefine changes the definition of a custom kind.
func (s *scene) redefine(r object.Resource, spec map[string]any) {
	s.t.Helper()
	patch, err := client.MergePatch(map[string]any{"spec": spec})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.metadata(controlplanetest.Definitions).Patch(s.t.Context(), object.Key{Name: r.String()}, patch); err != nil {
		s.t.Fatal(err)
	}
}

func TestKindsComeAndGoWhileItRuns(t *testing.T) {
	s := newScene(t)
	s.collect()
	s.rests()
	kind := object.Resource{Group: "comes.example.org", Version: "v1", Plural: "guests", Kind: "Guest", Namespaced: true}
	for range 2 {
		define(t, kind)
		owner := s.make(kind, "owner")
		custom := s.make(kind, "custom", owner.owns(blocking))
		builtIn := s.make(configMaps, "built-in", custom.owns(blocking))
		s.delete(owner, metav1.DeletePropagationForeground)
		s.goes(builtIn, custom, owner)
		// What it owns goes with a kind.
		last := s.make(kind, "last")
		mine := s.make(configMaps, "mine", last.owns())
		other := s.make(configMaps, "other")
		both := s.make(configMaps, "both", last.owns(), other.owns())
		s.Undefine(t, kind)
		s.goes(mine)
		s.keeps(both, "other")
		s.delete(other, metav1.DeletePropagationBackground)
		s.goes(both)
		// Another scope and another plural, under the same name.
		kind.Plural, kind.Namespaced = "visitors", false
	}
}

func TestAnOwnerOfAKindThatIsNotServedKeepsItsDependents(t *testing.T) {
	s := newScene(t)
	s.collect()
	kind := object.Resource{Group: "later.example.org", Version: "v1", Plural: "lates", Kind: "Late", Namespaced: true}
	unknown := made{Resource: kind, Key: s.key(kind, "owner"), uid: "11111111-1111-1111-1111-111111111111"}
	dependent := s.make(configMaps, "dependent", unknown.owns())
	gone := s.make(configMaps, "gone")
	both := s.make(configMaps, "both", unknown.owns(), gone.owns(blocking))
	// Nobody waits for an object that may have another owner.
	s.delete(gone, metav1.DeletePropagationForeground)
	s.goes(gone)
	s.keeps(both, "owner")
	s.rests()
	s.keeps(dependent, "owner")
	// As soon as it is served it is clear that there is no such owner.
	define(t, kind)
	defer s.Undefine(t, kind)
	s.goes(dependent, both)
}

func TestAKindThatCannotBeWatchedDoesNotHoldUpTheOthers(t *testing.T) {
	s := newScene(t)
	// What is stored in another version cannot be read without the webhook.
	kind := object.Resource{Group: "broken.example.org", Version: "v1", Plural: "breaks", Kind: "Break", Namespaced: true}
	define(t, kind)
	broken := s.make(kind, "broken")
	dependent := s.make(configMaps, "dependent", broken.owns())
	s.redefine(kind, map[string]any{
		"versions": controlplanetest.CustomVersions("v1", "v2"),
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		}},
	})
	kind.Version = "v2"
	s.eventually(func() string {
		if _, _, err := s.metadata(kind).List(t.Context(), client.Selection{}); err == nil || apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s can be listed: %v", kind, err)
		}
		return ""
	})
	defer func() { // for the other tests
		s.redefine(kind, map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}})
		s.Undefine(t, kind)
	}()
	s.patience = time.Second
	s.collect()
	s.rests()
	s.keeps(dependent, "broken")
}

func TestAKindIsWatchedOnInTheVersionThatIsLeft(t *testing.T) {
	s := newScene(t)
	kind := object.Resource{Group: "moves.example.org", Version: "v1", Plural: "moves", Kind: "Move", Namespaced: true}
	define(t, kind)
	defer s.Undefine(t, kind)
	s.collect()
	owner := s.make(kind, "owner")
	dependents := []made{s.make(kind, "custom", owner.owns(blocking)), s.make(configMaps, "built-in", owner.owns(blocking))}
	s.hold(dependents[0])
	s.delete(owner, metav1.DeletePropagationForeground)
	s.goes(dependents[1])
	versions := controlplanetest.CustomVersions("v1", "v2")
	versions[0]["served"] = false
	s.redefine(kind, map[string]any{"versions": versions})
	now := kind
	now.Version = "v2"
	s.AwaitServed(t, now)
	owner.Resource, dependents[0].Resource = now, now
	s.rests()
	if s.get(owner) == nil {
		t.Error("the owner has gone before the object that blocks it")
	}
	s.patch(dependents[0], map[string]any{"finalizers": nil})
	s.goes(dependents[0], owner)
}
