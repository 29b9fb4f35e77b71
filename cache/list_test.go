// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

func TestListsOfAnySizeAreInTheOrderOfTheirItems(t *testing.T) {
	b := newBudgeted(t, nil)
	for n := range 200 {
		b.write(n)
		if n%37 != 0 && n != 199 {
			continue
		}
		b.get(n) // one of them is decoded
		all, err := b.Snapshot().List("", labels.Everything())
		if err != nil || len(all) != n+1 {
			t.Fatalf("have %d of %d Pods, %v", len(all), n+1, err)
		}
		again, err := Objects(b.Snapshot().All())
		if err != nil || len(again) != n+1 {
			t.Fatalf("have %d of %d Pods, %v", len(again), n+1, err)
		}
		i := 0
		for key := range b.All() {
			if all[i].Name != key.Name || again[i] != all[i] {
				t.Fatalf("object %d of %d is %s and %s, want %s", i, n+1, all[i].Name, again[i].Name, key.Name)
			}
			i++
		}
	}
}

func TestAListFailsWithTheFirstObjectThatCannotBeDecoded(t *testing.T) {
	b := newBudgeted(t, NewBudget(1<<20))
	for n := range 100 {
		b.write(n)
	}
	first := ""
	for key, item := range b.All() {
		if strings.HasSuffix(key.Name, "7") {
			item.entry.text = item.entry.text[:len(item.entry.text)-10] + strings.Repeat("\xff", 10)
			if first == "" {
				first = key.String()
			}
		}
	}
	if all, err := b.List(nil); err == nil || !strings.Contains(err.Error(), "reading "+first+" from the cache") || all != nil {
		t.Errorf("have %d Pods and %v, want an error for %s", len(all), err, first)
	}
	if all, err := Objects(func(func(object.Key, Item[*corev1.Pod]) bool) {}); len(all) != 0 || err != nil {
		t.Errorf("a list of nothing: %d, %v", len(all), err)
	}
}
