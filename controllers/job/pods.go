// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"iter"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// openPods finds the Pods of a Job that are not both ended and counted, and which of them are
// active. A Job of 100,000 completions has few of them, however many of its Pods are left.
type openPods struct{ index cache.Index[*corev1.Pod] }

// openIndex is the identity of the index in an informer.
type openIndex struct{}

func newOpenPods(pods cache.SharedInformer[*corev1.Pod]) openPods {
	return openPods{cache.SharedIndex(pods, openIndex{}, func(item cache.Item[*corev1.Pod]) ([]string, error) {
		ref := jobRef(item.Meta())
		if ref == nil {
			return nil, nil
		}
		in, err := item.Text(phase)
		if err != nil {
			return nil, err
		}
		ended := podstate.Final(corev1.PodPhase(in))
		switch {
		case !ended && !item.Meta().Deleting():
			return []string{string(ref.UID), string(ref.UID) + active}, nil
		case !ended || isTracked(item.Meta()):
			return []string{string(ref.UID)}, nil
		}
		return nil, nil
	})}
}

// active follows the UID of a Job where the index has its active Pods.
const active = "/active"

// of returns the open Pods of a Job.
func (o openPods) of(snapshot cache.Snapshot[*corev1.Pod], job types.UID, namespace string) []cache.Item[*corev1.Pod] {
	var items []cache.Item[*corev1.Pod]
	for key, item := range o.index.In(snapshot, string(job)) {
		if key.Namespace == namespace { // a Job owns nothing in other namespaces, whatever a Pod there claims
			items = append(items, item)
		}
	}
	return items
}

// moreActive reports whether more than n Pods of a Job are active. It reads n+1 of them at most.
func (o openPods) moreActive(snapshot cache.Snapshot[*corev1.Pod], job *batchv1.Job, n int) bool {
	for key := range o.index.In(snapshot, string(job.UID)+active) {
		if key.Namespace == job.Namespace {
			n--
		}
		if n < 0 {
			return true
		}
	}
	return false
}

// phase is where a Pod says in which phase it is.
var phase = wire.Path{Names: "status.phase", Numbers: [4]int32{3, 1}}

// isOpen reports whether a Pod has not ended, or has not been counted. It does not decode the Pod.
func isOpen(item cache.Item[*corev1.Pod]) (bool, error) {
	if isTracked(item.Meta()) {
		return true, nil
	}
	in, err := item.Text(phase)
	return err == nil && !podstate.Final(corev1.PodPhase(in)), err
}

func isTracked(m object.Meta) bool {
	return slices.Contains(m.Finalizers, batchv1.JobTrackingFinalizer)
}

// jobRef returns the reference to the Job that controls an object, or nil.
func jobRef(m object.Meta) *metav1.OwnerReference { return jobIn(m.Controller()) }

// jobIn returns the reference to a managing controller if it is a Job, and nil otherwise.
func jobIn(ref *metav1.OwnerReference) *metav1.OwnerReference {
	if ref != nil && ref.Kind == jobs.Kind && ref.APIVersion == jobs.GroupVersionKind().GroupVersion().String() {
		return ref
	}
	return nil
}

// claim returns the open Pods that a Job controls. If it adopts or releases Pods, settled is false:
// the run that follows sees them.
func (r *reconciler) claim(ctx context.Context, job *batchv1.Job) (pods []*corev1.Pod, settled bool, err error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, false, err
	}
	snapshot := r.pods.Snapshot()
	var undecided []cache.Item[*corev1.Pod]
	for _, item := range r.open.of(snapshot, job.UID, job.Namespace) {
		if !selector.Matches(item.Meta().Labels) {
			if job.DeletionTimestamp == nil {
				undecided = append(undecided, item)
			}
			continue
		}
		pod, err := item.Object()
		if err != nil {
			return nil, false, err // a Pod that is not counted would be created again
		}
		pods = append(pods, pod)
	}
	if job.DeletionTimestamp == nil {
		for _, item := range r.orphans.Selected(snapshot, job.Namespace, selector) {
			if !item.Meta().Deleting() {
				undecided = append(undecided, item)
			}
		}
	}
	if len(undecided) == 0 {
		return pods, true, nil
	}
	claim := owned.Claim[*corev1.Pod]{
		Server: r.pods.Server(), Owner: job, Kind: jobs.GroupVersionKind(), Selector: selector, Finalizer: batchv1.JobTrackingFinalizer,
		Live: owned.LiveFrom(r.jobs.Server(), job),
	}
	_, err = claim.Of(ctx, all(undecided))
	if errors.Is(err, owned.ErrOwnerGone) {
		err = nil // the cache will show that the Job is gone
	}
	return nil, false, err
}

// all returns the items as they are in a snapshot.
func all(items []cache.Item[*corev1.Pod]) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	return func(yield func(object.Key, cache.Item[*corev1.Pod]) bool) {
		for _, item := range items {
			if !yield(item.Key(), item) {
				return
			}
		}
	}
}

// strip removes the finalizer from Pods, and returns those that do not have it any more.
func (r *reconciler) strip(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	done := make([]bool, len(pods))
	streams := min(len(pods), stripsAtOnce)
	errs := owned.Batch(ctx, streams, func(ctx context.Context, first int) error {
		var failed error
		for i := first; i < len(pods); i += streams {
			err := r.removeFinalizer(ctx, pods[i], map[string]any{"uid": pods[i].UID})
			err = ignoreGone(err, object.KeyOf(pods[i]))
			done[i] = err == nil
			failed = errors.Join(failed, err)
		}
		return failed
	})
	var stripped []*corev1.Pod
	for i, pod := range pods {
		if done[i] {
			stripped = append(stripped, pod)
		}
	}
	return stripped, errors.Join(errs...)
}

// stripsAtOnce bounds how many Pods of one Job lose their finalizers at the same time. The deletes
// of podwriter have the same bound, for the same reason.
const stripsAtOnce = 64

// removeFinalizer removes the finalizer from a Pod whose metadata is as expected. Otherwise the
// error is a conflict.
func (r *reconciler) removeFinalizer(ctx context.Context, pod *corev1.Pod, expected map[string]any) error {
	expected["$deleteFromPrimitiveList/finalizers"] = []string{batchv1.JobTrackingFinalizer}
	patch, err := client.StrategicPatch(map[string]any{"metadata": expected})
	if err != nil {
		return err
	}
	_, err = r.pods.Patch(ctx, object.KeyOf(pod), patch)
	return err
}

// removeFinalizerOf is removeFinalizer for a Pod that must be as it was read.
func (r *reconciler) removeFinalizerOf(ctx context.Context, pod *corev1.Pod) error {
	return r.removeFinalizer(ctx, pod, map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion})
}

// untrack removes the finalizer from a Pod that is deleted because it is too many. The patch has
// the version of the Pod: one that has ended meanwhile is to be counted, and stays.
func (r *reconciler) untrack(ctx context.Context, _ podwriter.Owner, pod *corev1.Pod) error {
	if !tracked(pod) {
		return nil
	}
	return r.removeFinalizerOf(ctx, pod)
}
