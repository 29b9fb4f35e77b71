// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"iter"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
)

// still is a view of Pods that a benchmark changes itself.
type still struct {
	view
	pods map[object.Key]*corev1.Pod
}

func (s *still) get(key object.Key) (subject, bool) {
	pod, there := s.pods[key]
	if !there {
		return subject{}, false
	}
	return subject{meta: object.MetaOf(pod), read: func() (any, error) { return pod, nil }}, true
}

func (s *still) in(string) iter.Seq2[object.Key, subject] {
	return func(yield func(object.Key, subject) bool) {
		for key := range s.pods {
			if o, _ := s.get(key); !yield(key, o) {
				return
			}
		}
	}
}

// An event costs the same in a namespace of any size: what one Pod costs that appears, changes
// and goes. Decoding is not in it.
func BenchmarkEvent(b *testing.B) {
	for _, size := range []int{10, 20_000} {
		b.Run(fmt.Sprint(size, " Pods"), func(b *testing.B) {
			b.ReportAllocs()
			s := &still{pods: map[object.Key]*corev1.Pod{}}
			pod := func(i int) *corev1.Pod {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint(i))}}
				p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: hard("cpu=500m", "memory=1Gi")}}}
				return p
			}
			for i := range size {
				p := pod(i)
				s.pods[object.KeyOf(p)] = p
			}
			q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard("pods=10", "requests.cpu=4", "requests.memory=8Gi")}}
			quota, err := accounting.NewQuota(q)
			if err != nil {
				b.Fatal(err)
			}
			a := newAccount(q, quota, inFlight)
			around := accounting.Around{Now: time.Now()}
			if err := a.attach(want{accounting.Pods, true}, s, quota.Limited(), around); err != nil {
				b.Fatal(err)
			}
			one := pod(size)
			key := object.KeyOf(one)
			b.ResetTimer()
			for range b.N {
				s.pods[key] = one
				for range 3 { // it appears, gets a node, gets ready
					if _, err := a.refresh(accounting.Pods, one.Name, around); err != nil {
						b.Fatal(err)
					}
				}
				delete(s.pods, key)
				if _, err := a.refresh(accounting.Pods, one.Name, around); err != nil {
					b.Fatal(err)
				}
				a.settle(a.freed)
			}
		})
	}
}
