// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatBecomesOfAnObjectIsUpToItsOwners(t *testing.T) {
	const (
		background = metav1.DeletePropagationBackground
		foreground = metav1.DeletePropagationForeground
		orphan     = metav1.DeletePropagationOrphan
	)
	uids := func(all ...types.UID) []types.UID { return all }
	for name, test := range map[string]struct {
		owners     owners
		finalizers []string
		dependents bool
		want       decision
	}{
		"no owner":                             {},
		"all there":                            {owners: owners{solid: uids("a", "b")}, want: decision{}},
		"all gone":                             {owners: owners{dangling: uids("a", "b")}, want: decision{delete: background}},
		"all gone, has dependents":             {owners: owners{dangling: uids("a")}, dependents: true, want: decision{delete: background}},
		"all gone, to be orphaned":             {owners: owners{dangling: uids("a")}, finalizers: []string{"x", metav1.FinalizerOrphanDependents}, want: decision{delete: orphan}},
		"all gone, in the foreground":          {owners: owners{dangling: uids("a")}, finalizers: []string{metav1.FinalizerDeleteDependents}, want: decision{delete: foreground}},
		"one gone":                             {owners: owners{solid: uids("a"), dangling: uids("b", "c")}, want: decision{drop: uids("b", "c")}},
		"one waits":                            {owners: owners{waiting: uids("a"), dangling: uids("b")}, want: decision{delete: background}},
		"one waits, has dependents":            {owners: owners{waiting: uids("a"), dangling: uids("b")}, dependents: true, want: decision{delete: foreground}},
		"one waits, another is there":          {owners: owners{solid: uids("a"), waiting: uids("b")}, dependents: true, want: decision{drop: uids("b")}},
		"one cannot be asked about":            {owners: owners{unknown: uids("a")}, want: decision{}},
		"one cannot be asked about, one gone":  {owners: owners{unknown: uids("a"), dangling: uids("b")}, want: decision{drop: uids("b")}},
		"one cannot be asked about, one waits": {owners: owners{unknown: uids("a"), waiting: uids("b")}, want: decision{drop: uids("b")}},
		"named twice, once wrongly":            {owners: owners{solid: uids("a"), dangling: uids("a")}, want: decision{}},
		"named twice, once by a kind unknown":  {owners: owners{unknown: uids("a"), dangling: uids("a")}, want: decision{}},
		"waits, and named by a kind unknown":   {owners: owners{unknown: uids("a"), waiting: uids("a")}, want: decision{drop: uids("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(test.owners, test.finalizers, test.dependents)
			if len(got.drop) == 0 {
				got.drop = nil
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("decided %+v, want %+v", got, test.want)
			}
		})
	}
}
