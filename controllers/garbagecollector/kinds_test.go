// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

var definitions = object.Resource{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition"}

// things and rooms are custom kinds that are there for all tests.
func things(t *testing.T) object.Resource {
	t.Helper()
	return define(t, object.Resource{Group: "gc.example.org", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true})
}

func rooms(t *testing.T) object.Resource {
	t.Helper()
	return define(t, object.Resource{Group: "gc.example.org", Version: "v1", Plural: "rooms", Kind: "Room"})
}

// versions are those of a custom kind, the first of which is the one that is stored.
func versions(names ...string) []map[string]any {
	var all []map[string]any
	for i, name := range names {
		all = append(all, map[string]any{
			"name": name, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return all
}

// define defines a custom kind, unless it is, and waits until it is served.
func define(t *testing.T, r object.Resource) object.Resource {
	t.Helper()
	c := shared.Get(t).Client
	scope := "Cluster"
	if r.Namespaced {
		scope = "Namespaced"
	}
	all := map[string]any{
		"group": r.Group, "scope": scope, "versions": versions(r.Version),
		"names": map[string]any{"plural": r.Plural, "kind": r.Kind, "singular": strings.ToLower(r.Kind)},
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.APIVersion(), "kind": definitions.Kind,
		"metadata": map[string]any{"name": r.Plural + "." + r.Group}, "spec": plain(t, all),
	}}
	_, err := client.ForResource[*unstructured.Unstructured](c, definitions).Create(t.Context(), o)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	s := &scene{Cluster: shared.Get(t), t: t}
	s.eventually(func() string {
		if _, _, err := s.metadata(r).List(t.Context(), client.Selection{}); apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s is not served", r)
		}
		return ""
	})
	return r
}

// plain turns any value into what JSON decodes to.
func plain(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func (s *scene) undefine(r object.Resource) {
	s.t.Helper()
	key := object.Key{Name: r.Plural + "." + r.Group}
	if err := s.metadata(definitions).Delete(s.t.Context(), key); err != nil {
		s.t.Fatal(err)
	}
	s.eventually(func() string {
		if _, err := s.metadata(definitions).Get(s.t.Context(), key); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s is still defined: %v", r, err)
		}
		return ""
	})
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
		s.undefine(kind)
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
	defer s.undefine(kind)
	s.goes(dependent, both)
}

func TestAKindThatCannotBeWatchedDoesNotHoldUpTheOthers(t *testing.T) {
	s := newScene(t)
	// What is stored in another version cannot be read without the webhook.
	kind := object.Resource{Group: "broken.example.org", Version: "v1", Plural: "breaks", Kind: "Break", Namespaced: true}
	define(t, kind)
	broken := s.make(kind, "broken")
	dependent := s.make(configMaps, "dependent", broken.owns())
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{
		"versions": versions("v2", "v1"),
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	definition := object.Key{Name: kind.Plural + "." + kind.Group}
	if _, err := s.metadata(definitions).Patch(t.Context(), definition, patch); err != nil {
		t.Fatal(err)
	}
	kind.Version = "v2"
	s.eventually(func() string {
		if _, _, err := s.metadata(kind).List(t.Context(), client.Selection{}); err == nil || apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s can be listed: %v", kind, err)
		}
		return ""
	})
	defer func() { // for the other tests
		mend, _ := client.MergePatch(map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}})
		if _, err := s.metadata(definitions).Patch(t.Context(), definition, mend); err != nil {
			t.Error(err)
		}
		s.undefine(kind)
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
	defer s.undefine(kind)
	s.collect()
	owner := s.make(kind, "owner")
	dependents := []made{s.make(kind, "custom", owner.owns(blocking)), s.make(configMaps, "built-in", owner.owns(blocking))}
	s.hold(dependents[0])
	s.delete(owner, metav1.DeletePropagationForeground)
	s.goes(dependents[1])
	served := versions("v2", "v1")
	served[1]["served"] = false
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"versions": served}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.metadata(definitions).Patch(t.Context(), object.Key{Name: kind.Plural + "." + kind.Group}, patch); err != nil {
		t.Fatal(err)
	}
	now := kind
	now.Version = "v2"
	define(t, now)
	owner.Resource, dependents[0].Resource = now, now
	s.rests()
	if s.get(owner) == nil {
		t.Error("the owner has gone before the object that blocks it")
	}
	s.patch(dependents[0], map[string]any{"finalizers": nil})
	s.goes(dependents[0], owner)
}
