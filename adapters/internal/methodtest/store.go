// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package methodtest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// NoteReads reads a store of Pods in every way. The names of the Pods are a, b and c, in the namespaces
// team-a and team-b, and the values of indexes n1, n2, web and any.
func NoteReads(seen *Transcript, x cache.Indexer, indexes ...string) {
	seen.Note("List %s, ListKeys %s", namesOf(x.List()), sorted(x.ListKeys()))
	for _, o := range []any{
		pod("team-a", "a"), pod("team-b", "c"), pod("team-a", "none"), &metav1.ObjectMeta{Namespace: "team-a", Name: "b"},
		cache.DeletedFinalStateUnknown{Key: "team-a/a"}, "text", nil,
	} {
		found, exists, err := x.Get(o)
		_, isKeyError := errors.AsType[cache.KeyError](err)
		seen.Note("Get %T: %s %t %v %t", o, nameOf(found), exists, err, isKeyError)
	}
	for _, key := range []string{"team-a/a", "team-b/c", "a", "", "/", "team-a/", "team-a/a/b", "/a", "team-c/a"} {
		found, exists, err := x.GetByKey(key)
		seen.Note("GetByKey %q: %s %t %v", key, nameOf(found), exists, err)
	}
	for _, index := range append(indexes, "none") {
		for _, value := range []string{"n1", "n2", "web", "any", "team-a", "team-b", ""} {
			found, err := x.ByIndex(index, value)
			keys, keysErr := x.IndexKeys(index, value)
			seen.Note("ByIndex %s %q: %s %v, IndexKeys %s %v", index, value, namesOf(found), err, sorted(keys), keysErr)
		}
		on, labelled := pod("team-a", "other"), pod("team-a", "other")
		on.Spec.NodeName, labelled.Labels = "n1", map[string]string{"app": "web"}
		for _, o := range []*corev1.Pod{on, labelled, pod("team-c", "other")} {
			found, err := x.Index(index, o)
			seen.Note("Index %s: %s %v", index, namesOf(found), err)
		}
		seen.Note("ListIndexFuncValues %s: %s", index, sorted(x.ListIndexFuncValues(index)))
	}
	seen.Note("GetIndexers: %v", slices.Sorted(maps.Keys(x.GetIndexers())))
}

// NoteIndexes notes the keys and the values of indexes, with what NoteReads leaves out: the order of keys,
// and whether an empty list is nil.
func NoteIndexes(seen *Transcript, x cache.Indexer, indexes ...string) {
	for _, index := range append(indexes, "none") {
		for _, value := range []string{"n1", "n2", "team", ""} {
			keys, err := x.IndexKeys(index, value)
			seen.Note("IndexKeys %s %q: %#v %v", index, value, keys, err)
		}
		values := x.ListIndexFuncValues(index)
		seen.Note("ListIndexFuncValues %s: %s, nil %t", index, sorted(values), values == nil)
	}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func nameOf(o any) string {
	if m, ok := o.(metav1.Object); ok {
		return m.GetName()
	}
	return "nothing"
}

func namesOf(objects []any) string {
	var all []string
	for _, o := range objects {
		all = append(all, nameOf(o))
	}
	return sorted(all)
}

func sorted(words []string) string { return strings.Join(slices.Sorted(slices.Values(words)), " ") }
