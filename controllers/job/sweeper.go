// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// stray names Pods whose finalizer may be left for ever: the Pods of a Job, or one Pod
// that no controller has.
type stray struct {
	object.Key
	job types.UID // empty for a Pod
}

func (s stray) String() string {
	if s.job == "" {
		return "Pod " + s.Key.String()
	}
	return fmt.Sprintf("Pods of Job %s (UID %s)", s.Key, s.job)
}

// newSweeper returns the loop that frees the Pods of Jobs that are gone. Each Pod with the
// finalizer whose Job the cache does not have leads to a run, those of the first list included: so
// it also finds what was left while no controller ran.
func newSweeper(r *reconciler, o Options) controller.Loop {
	return controller.NewKeyed(Name+"-sweeper", r.sweep,
		controller.Watches(r.pods, r.strays, func(e cache.Event[*corev1.Pod]) bool {
			return e.New.Exists() && isTracked(e.New.Meta())
		}),
		controller.Watches(r.jobs, jobsThatGo, func(e cache.Event[*batchv1.Job]) bool {
			return e.Old.Exists() && (!e.New.Exists() || e.Old.Meta().UID != e.New.Meta().UID)
		}),
		controller.Workers(o.Workers),
	)
}

// strays adds a Pod that no Job of the cache controls.
func (r *reconciler) strays(pod cache.Item[*corev1.Pod], add func(stray)) {
	m := pod.Meta()
	if m.Controller() == nil {
		add(stray{Key: m.Key})
		return
	}
	if ref := jobRef(m); ref != nil {
		key := object.Key{Namespace: m.Namespace, Name: ref.Name}
		if !r.isShown(key, ref.UID) {
			add(stray{key, ref.UID})
		}
	}
}

// jobsThatGo adds the Pods of a Job.
func jobsThatGo(job cache.Item[*batchv1.Job], add func(stray)) {
	add(stray{job.Key(), job.Meta().UID})
}

// isShown reports whether the cache has a Job. Its own loop then removes the finalizers of its
// Pods.
func (r *reconciler) isShown(key object.Key, uid types.UID) bool {
	item := r.jobs.Snapshot().Get(key)
	return item.Exists() && item.Meta().UID == uid
}

// sweep frees Pods if they are strays.
func (r *reconciler) sweep(ctx context.Context, req controller.RequestOf[stray]) (controller.Result, error) {
	if req.Key.job == "" {
		return r.sweepPod(ctx, req.Key.Key)
	}
	if r.isShown(req.Key.Key, req.Key.job) || len(r.trackedOf(req.Key.job, req.Key.Namespace)) == 0 {
		return controller.Result{}, nil
	}
	// The cache may be behind: a new Job may come after its Pods.
	job, err := r.jobs.Server().Get(ctx, req.Key.Key)
	switch {
	case client.AbsentAt(err, req.Key.Key), err == nil && job.UID != req.Key.job:
		return controller.Result{}, r.freeOf(ctx, req.Key.job, req.Key.Namespace)
	case err != nil:
		return controller.Result{}, fmt.Errorf("reading Job %s, which Pods name as their controller: %w", req.Key.Key, err)
	}
	return controller.Result{Again: true}, nil
}

// sweepPod frees a Pod that no controller has. The patch has the version of the Pod: a Job may
// adopt it meanwhile.
func (r *reconciler) sweepPod(ctx context.Context, key object.Key) (controller.Result, error) {
	pod, err := r.pods.Get(key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if !tracked(pod) || object.MetaOf(pod).Controller() != nil {
		return controller.Result{}, nil
	}
	err = r.removeFinalizerOf(ctx, pod)
	switch {
	case apierrors.IsConflict(err):
		return controller.Result{Again: true}, nil
	case err == nil:
		r.log.Info("removed the finalizer of a Pod that no Job controls", "pod", key)
	}
	return controller.Result{}, ignoreGone(err, key)
}

// trackedOf returns the Pods of a Job that have the finalizer.
func (r *reconciler) trackedOf(job types.UID, namespace string) []cache.Item[*corev1.Pod] {
	var items []cache.Item[*corev1.Pod]
	for _, item := range r.open.of(r.pods.Snapshot(), job, namespace) {
		if isTracked(item.Meta()) {
			items = append(items, item)
		}
	}
	return items
}

// freeOf removes the finalizers of the Pods of a Job that counts no Pods any more.
func (r *reconciler) freeOf(ctx context.Context, job types.UID, namespace string) error {
	var pods []*corev1.Pod
	var failed error
	for _, item := range r.trackedOf(job, namespace) {
		pod, err := item.Object()
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		pods = append(pods, pod)
	}
	stripped, err := r.strip(ctx, pods)
	if len(stripped) > 0 {
		r.log.Info("removed the finalizers of Pods whose Job counts them no more", "job", job, "namespace", namespace, "pods", len(stripped))
	}
	return errors.Join(failed, err)
}

// ignoreGone returns nil for an error that says that a Pod is gone, or that another Pod has its
// name.
func ignoreGone(err error, pod object.Key) error {
	if err == nil || client.AbsentAt(err, pod) {
		return nil
	}
	return fmt.Errorf("removing the finalizer from Pod %s: %w", pod, err)
}
