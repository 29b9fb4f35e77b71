// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// lefts returns a leftover of a number of objects.
func lefts(plural, group string, count int, finalizers map[string]int) leftover {
	l := leftover{resource: object.Resource{Group: group, Version: "v1", Plural: plural}, finalizers: finalizers, objects: map[types.UID]string{}}
	for i := range count {
		l.objects[types.UID(fmt.Sprint(i))] = fmt.Sprint(i)
	}
	return l
}

func TestFiveConditionsSayWhatRemains(t *testing.T) {
	tests := []struct {
		name  string
		found findings
		want  map[corev1.NamespaceConditionType][2]string // reason and message of those that are true
	}{
		{"nothing", findings{}, nil},
		{
			"objects of two kinds, one without group, with finalizers",
			findings{left: []leftover{
				lefts("widgets", "example.com", 3, map[string]int{"b.example.com": 3, "a.example.com": 1}),
				lefts("configmaps", "", 2, map[string]int{"a.example.com": 1}),
			}},
			map[corev1.NamespaceConditionType][2]string{
				corev1.NamespaceContentRemaining: {
					"SomeResourcesRemain",
					"Some resources are remaining: configmaps. has 2 resource instances, widgets.example.com has 3 resource instances",
				},
				corev1.NamespaceFinalizersRemaining: {
					"SomeFinalizersRemain",
					"Some content in the namespace has finalizers remaining: a.example.com in 2 resource instances, b.example.com in 3 resource instances",
				},
			},
		},
		{
			"a group that is away",
			findings{discovery: &client.DiscoveryError{Failed: map[schema.GroupVersion]error{{Group: "away.example.com", Version: "v1"}: errors.New("no endpoints")}}},
			map[corev1.NamespaceConditionType][2]string{
				corev1.NamespaceDeletionDiscoveryFailure: {
					"DiscoveryFailed",
					"Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: away.example.com/v1: no endpoints",
				},
			},
		},
		{
			"no discovery at all",
			findings{discovery: errors.New("connection refused")},
			map[corev1.NamespaceConditionType][2]string{corev1.NamespaceDeletionDiscoveryFailure: {"DiscoveryFailed", "connection refused"}},
		},
		{
			"kinds that cannot be emptied, in the order of their texts",
			findings{failures: []error{errors.New("b is forbidden"), errors.New("a is forbidden")}},
			map[corev1.NamespaceConditionType][2]string{
				corev1.NamespaceDeletionContentFailure: {"ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: a is forbidden, b is forbidden"},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conditions := test.found.conditions()
			if len(conditions) != 5 {
				t.Errorf("%d conditions, want 5", len(conditions))
			}
			for _, c := range conditions {
				want, complains := test.want[c.Type]
				if !complains {
					at := slices.IndexFunc(allWell, func(well corev1.NamespaceCondition) bool { return well.Type == c.Type })
					if c != allWell[at] {
						t.Errorf("%+v, want that all is well", c)
					}
					continue
				}
				if c.Status != corev1.ConditionTrue || c.Reason != want[0] || c.Message != want[1] {
					t.Errorf("%+v, want reason %q and message %q", c, want[0], want[1])
				}
			}
		})
	}
}

func TestConditionsChangeOnlyWhereSomethingDid(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	foreign := corev1.NamespaceCondition{Type: "example.com/Mine", Status: corev1.ConditionTrue}
	first, changed := withConditions([]corev1.NamespaceCondition{foreign}, (&findings{}).conditions(), before)
	if !changed || len(first) != 6 || first[0] != foreign || first[5].LastTransitionTime != before {
		t.Fatalf("the first conditions are %+v, want five beside the foreign one", first)
	}
	if _, changed := withConditions(first, (&findings{}).conditions(), now); changed {
		t.Error("the same conditions are a change")
	}
	three := findings{left: []leftover{lefts("widgets", "example.com", 3, nil)}}
	second, changed := withConditions(first, three.conditions(), now)
	at := slices.IndexFunc(second, func(c corev1.NamespaceCondition) bool { return c.Type == corev1.NamespaceContentRemaining })
	if !changed || second[at].LastTransitionTime != now || second[1].LastTransitionTime != before {
		t.Errorf("%+v: only the condition that changed has a new time", second)
	}
	if first[at].Status != corev1.ConditionFalse {
		t.Error("the conditions that were given have been changed")
	}
	two := findings{left: []leftover{lefts("widgets", "example.com", 2, nil)}}
	third, changed := withConditions(second, two.conditions(), metav1.NewTime(time.Unix(3000, 0)))
	if !changed || third[at].LastTransitionTime != now || third[at].Message == second[at].Message {
		t.Errorf("%+v: another message is a change, and no transition", third[at])
	}
}
