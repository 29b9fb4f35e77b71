// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

// sameAmounts compares quantities, which have several ways to be written.
func sameAmounts(a, b corev1.ResourceList) bool {
	for name, q := range a {
		if q.Cmp(b[name]) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}

// After each event the sum is that of a new Sum of the objects that are there.
func TestASumIsThatOfAFullCount(t *testing.T) {
	names := []corev1.ResourceName{"pods", "requests.cpu", "requests.memory", "requests.storage"}
	rapid.Check(t, func(t *rapid.T) {
		var sum accounting.Sum
		objects := map[types.UID]corev1.ResourceList{}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			uid := types.UID(fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "object")))
			used := corev1.ResourceList{}
			for range rapid.IntRange(0, 4).Draw(t, "resources") {
				amount := rapid.SampledFrom([]string{"0", "1", "1n", "999m", "1Gi", "3Ti", "9223372036854775807", "123456789012345678901234", "0.000000001"}).Draw(t, "amount")
				used[rapid.SampledFrom(names).Draw(t, "resource")] = resource.MustParse(amount)
			}
			kept := used.DeepCopy()
			sum.Set(uid, used)
			if objects[uid] = kept; len(kept) == 0 {
				delete(objects, uid)
			}
			var full accounting.Sum
			for uid, used := range objects {
				full.Set(uid, used.DeepCopy())
			}
			if got, want := sum.Used(names...), full.Used(names...); !sameAmounts(got, want) || sum.Len() != len(objects) || len(sum.Objects()) != len(objects) {
				t.Fatalf("the sum of %d objects is %s, want %s of %d", sum.Len(), text(got), text(want), len(objects))
			}
		}
		for uid := range objects {
			sum.Set(uid, nil)
		}
		for name, q := range sum.Used(names...) {
			if !q.IsZero() {
				t.Errorf("%s of nothing is %s", name, q.String())
			}
		}
	})
}

func TestWhatASumReturnsIsTheCallers(t *testing.T) {
	var sum accounting.Sum
	sum.Set("a", amounts("pods=123456789012345678901234"))
	for range 2 {
		used := sum.Used("pods")
		if text(used) != "pods=123456789012345678901234" {
			t.Errorf("used is %s", text(used))
		}
		q := used["pods"]
		q.Add(resource.MustParse("1"))
	}
}

// An event costs the same in a namespace of any size: see ns/op for both.
func BenchmarkSet(b *testing.B) {
	for _, objects := range []int{10, 100_000} {
		b.Run(fmt.Sprint(objects, " objects"), func(b *testing.B) {
			var sum accounting.Sum
			for i := range objects {
				sum.Set(types.UID(fmt.Sprint(i)), amounts("pods=1", "requests.cpu=500m", "requests.memory=1Gi"))
			}
			states := []corev1.ResourceList{amounts("pods=1", "requests.cpu=500m", "requests.memory=1Gi"), amounts("pods=1", "requests.cpu=1", "requests.memory=1Gi")}
			for i := 0; b.Loop(); i++ {
				sum.Set("5", states[i%2])
			}
		})
	}
}
