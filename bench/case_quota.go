// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// quotaCase is about quotas while Pods and ConfigMaps are created and deleted. The API server counts what is
// created; what was deleted is the manager's to count.
var quotaCase = scaleCase{
	what: fmt.Sprintf("Namespaces with a ResourceQuota and %d Pods and ConfigMaps each, of which %d a second are created and as many deleted, as far as the server takes it",
		quotaContents, quotaRate/2),
	size:        200,
	controllers: []string{"serviceaccount-controller", "resourcequota-controller"},
	measure:     measureQuotas,
	plain: func(ctx context.Context, s *scene) (readings, error) {
		if err := s.fillQuotaNamespaces(ctx); err != nil {
			return nil, err
		}
		wall, err := s.churn(ctx, false)
		return readings{"rate": 2 * float64(s.churned()) / wall}, err
	},
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "quota-first-count-seconds", unit: "s", reading: "first", aim: aim{most: 1}},
			{name: "quota-changes-per-second", unit: perSecond, reading: "rate"},
			// These have no quotas, and keep to no rate.
			{name: "quota-changes-vs-plain-clients", unit: perSecond, reading: "rate", plain: true},
			{name: "quota-cpu-per-1000-changes", unit: "s", reading: "cpu", aim: aim{most: 1. / 3}},
			// A Pod of a full quota is deleted, until the one that replaces it is admitted.
			{name: "quota-seconds-until-replaced", unit: "s", reading: "replaced", aim: aim{most: 1}},
			// Setpoint writes what nothing depends on once a second.
			{name: "quota-seconds-until-right", unit: "s", reading: "right"},
			{name: "quota-memory", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

const (
	quotaContents = 50    // Pods and ConfigMaps of a namespace, half of them each
	quotaRate     = 1_000 // creations and deletions a second, together
	quotaTime     = 30    // seconds that the load takes at that rate, with 200 quotas
	quotaName     = "all"
)

// churned is how many objects the load creates. As many are deleted.
func (s *scene) churned() int { return s.size * quotaRate * quotaTime / 2 / 200 }

func measureQuotas(ctx context.Context, s *scene) (readings, error) {
	if err := s.fillQuotaNamespaces(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		_, err := s.plain.CoreV1().ResourceQuotas(quotaNamespace(i)).Create(ctx, quota(), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.awaitQuotas(ctx); err != nil {
		return nil, err
	}
	found := readings{"first": time.Since(began).Seconds()}
	var wall float64
	var loaded time.Time
	l, err := s.work(ctx, "load", func() (err error) {
		if wall, err = s.churn(ctx, true); err != nil {
			return err
		}
		loaded = time.Now()
		if err := s.awaitQuotas(ctx); err != nil {
			return err
		}
		found["right"] = time.Since(loaded).Seconds()
		return nil
	})
	if err != nil {
		return nil, err
	}
	changes := 2 * float64(s.churned())
	found["rate"], found["cpu"] = changes/wall, l.cpu/changes*1000
	if found["memory"], err = s.manager.memory(); err != nil {
		return nil, err
	}
	found["replaced"], err = s.replacePods(ctx, quotaNamespace(0))
	return found, err
}

// quotaPause is the time between two attempts to create what a quota refuses.
const quotaPause = 2 * time.Millisecond

// replacePods makes the quota of a namespace full, and then deletes Pods and creates others for them, one after the
// other. It returns how many seconds that takes for each.
func (s *scene) replacePods(ctx context.Context, namespace string) (float64, error) {
	quotas, pods := s.plain.CoreV1().ResourceQuotas(namespace), s.plain.CoreV1().Pods(namespace)
	full := fmt.Sprintf(`{"spec":{"hard":{"pods":"%d"}}}`, quotaContents/2)
	if _, err := quotas.Patch(ctx, quotaName, types.MergePatchType, []byte(full), metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	err := poll(ctx, "the quota to be full", func() (bool, error) {
		q, err := quotas.Get(ctx, quotaName, metav1.GetOptions{})
		return err == nil && q.Status.Hard.Pods().Cmp(*q.Status.Used.Pods()) == 0, err
	})
	if err != nil {
		return 0, err
	}
	all, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for i := range all.Items {
		if err := pods.Delete(ctx, all.Items[i].Name, metav1.DeleteOptions{}); err != nil {
			return 0, err
		}
		next := countedPod(fmt.Sprint("replaced-", i))
		for {
			_, err := pods.Create(ctx, next, metav1.CreateOptions{})
			if err == nil {
				break
			}
			if !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
				return 0, err
			}
			if err := errors.Join(s.aliveManager(), pause(ctx, quotaPause)); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(began).Seconds() / float64(len(all.Items)), nil
}

// quota limits what nothing reaches, and so has to be counted.
func quota() *corev1.ResourceQuota {
	many := resource.MustParse("1000000T")
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quotaName},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: many, corev1.ResourceConfigMaps: many, corev1.ResourceRequestsCPU: many, corev1.ResourceRequestsMemory: many,
		}},
	}
}

func quotaNamespace(i int) string { return fmt.Sprint("team-", i) }

// fillQuotaNamespaces creates the namespaces and what is in them. Pods can be created once the manager has
// created the ServiceAccount of their namespace; for plain clients no manager runs.
func (s *scene) fillQuotaNamespaces(ctx context.Context) error {
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quotaNamespace(i)}}
		if _, err := s.plain.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err := s.plain.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{})
		return ignoreExisting(err)
	})
	if err != nil {
		return err
	}
	return s.each(ctx, s.size*quotaContents, s.createCounted)
}

// counted is the i-th object that quotas count: its namespace, and whether it is a Pod.
func (s *scene) counted(i int) (namespace, name string, isPod bool) {
	return quotaNamespace(i % s.size), fmt.Sprint("counted-", i), i/s.size%2 == 0
}

// createCounted creates the i-th object. Where the server and the manager write the status of its quota at once, the
// server may refuse the object, with a conflict, and a client tries again.
func (s *scene) createCounted(ctx context.Context, i int) error {
	for {
		if err := s.tryToCreateCounted(ctx, i); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (s *scene) tryToCreateCounted(ctx context.Context, i int) (err error) {
	namespace, name, isPod := s.counted(i)
	if isPod {
		_, err = s.plain.CoreV1().Pods(namespace).Create(ctx, countedPod(name), metav1.CreateOptions{})
		return err
	}
	_, err = s.plain.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// countedPod returns a Pod with requests.
func countedPod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template(nil).Spec}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	return pod
}

func (s *scene) deleteCounted(ctx context.Context, i int) error {
	namespace, name, isPod := s.counted(i)
	if isPod {
		return s.plain.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
	return s.plain.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// churn creates objects, and deletes the oldest ones, so that each namespace has as many as before. With
// paced there are quotaRate changes a second at most. It returns how many seconds it took.
func (s *scene) churn(ctx context.Context, paced bool) (float64, error) {
	began := time.Now()
	err := s.each(ctx, s.churned(), func(ctx context.Context, i int) error {
		if paced {
			if err := pause(ctx, time.Until(began.Add(time.Duration(2*i)*time.Second/quotaRate))); err != nil {
				return err
			}
		}
		if err := s.createCounted(ctx, s.size*quotaContents+i); err != nil {
			return err
		}
		return s.deleteCounted(ctx, i)
	})
	return time.Since(began).Seconds(), err
}

// awaitQuotas waits until the status of each quota is what is in its namespace.
func (s *scene) awaitQuotas(ctx context.Context) error {
	wrong := ""
	err := poll(ctx, "the quotas to be right", func() (bool, error) {
		list, err := s.plain.CoreV1().ResourceQuotas("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		right := 0
		for i := range list.Items {
			if wrong = wrongQuota(&list.Items[i].Status); wrong == "" {
				right++
			}
		}
		return right == s.size, s.aliveManager()
	})
	if err != nil && wrong != "" {
		return fmt.Errorf("%w; one has %s", err, wrong)
	}
	return err
}

// wrongQuota says what of a status is not as the namespace, which has half as many Pods and as many ConfigMaps.
// A ConfigMap with the certificates of the API server is not there: nothing publishes it.
func wrongQuota(status *corev1.ResourceQuotaStatus) string {
	var wrong []string
	for name, want := range map[corev1.ResourceName]string{
		corev1.ResourcePods: fmt.Sprint(quotaContents / 2), corev1.ResourceConfigMaps: fmt.Sprint(quotaContents / 2),
		corev1.ResourceRequestsCPU: fmt.Sprintf("%dm", quotaContents/2*100), corev1.ResourceRequestsMemory: fmt.Sprintf("%dMi", quotaContents/2*64),
	} {
		used, counted := status.Used[name]
		if !counted || used.Cmp(resource.MustParse(want)) != 0 {
			wrong = append(wrong, fmt.Sprintf("%s of %s, want %s", used.String(), name, want))
		}
	}
	return strings.Join(wrong, ", ")
}

// ignoreExisting returns nil for the error that an object is there already.
func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
