// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/object"
)

// errUnseen is the error of a run that would count Pods twice.
var errUnseen = errors.New("the caches do not show the controller's own writes yet")

// errChanged is the error of a status that was made from an older state of the Job.
var errChanged = errors.New("the Job has changed since it was read")

// reconcile takes the next step of one Job.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	if len(req.Unseen) > 0 {
		return controller.Result{}, errUnseen
	}
	job, err := r.jobs.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if ok, err := r.isWork(ctx, job); !ok || err != nil {
		return controller.Result{}, err
	}
	if wait := r.pause(job); wait > 0 {
		return controller.Result{After: wait}, nil
	}
	pods, settled, err := r.claim(ctx, job)
	if err != nil || !settled {
		return controller.Result{}, err
	}
	where, err := r.scheduling.of(ctx, job, pods)
	for _, reason := range where.why {
		controller.Because(ctx, reason)
	}
	if where.hold != nil && isNew(job, pods) {
		// Nothing is to be counted. The status of a Job that has no PodGroup must not say that the
		// Job has started: it would never get one.
		controller.Because(ctx, *where.hold)
		if client.NamespaceGone(err) {
			err = nil // the Job goes too
		}
		return controller.Result{}, err
	}
	result, failed := r.step(ctx, job, pods, where)
	return result, errors.Join(failed, err)
}

// isWork reports whether there is anything to do about a Job, and says why not.
func (r *reconciler) isWork(ctx context.Context, job *batchv1.Job) (bool, error) {
	switch {
	case isOthers(job):
		r.forget(object.KeyOf(job))
		controller.Because(ctx, reason(codeManaged, "the controller {name} manages the Job, by spec.managedBy", "", "name", *job.Spec.ManagedBy))
	case finished(job) != nil:
		r.forget(object.KeyOf(job))
		ended := finished(job)
		why := reason(codeFinished, "the Job has ended ({condition}): {message}", "", "condition", ended.Type, "message", ended.Message)
		why.Normal = ended.Type == batchv1.JobComplete
		controller.Because(ctx, why)
		return false, r.freeOf(ctx, job.UID, job.Namespace)
	case !knowsMode(job):
		r.recorder.Warning(job, reasonUnknownMode, actionReconcile, "Skipped Job sync because completion mode is unknown")
		controller.Because(ctx, reason(codeUnknownMode, "the completion mode {mode} is not known to this controller", "", "mode", *job.Spec.CompletionMode))
	default:
		return true, nil
	}
	return false, nil
}

// step creates and deletes Pods, counts those that have ended, and writes the status.
func (r *reconciler) step(ctx context.Context, job *batchv1.Job, pods []*corev1.Pod, where placement) (result controller.Result, err error) {
	var p *plan
	begin := r.now()
	defer func(job *batchv1.Job) { r.counts.ran(job, p, r.now().Sub(begin), err) }(job)
	before, err := r.backoffOf(job)
	if err != nil {
		return controller.Result{}, err
	}
	p = decide(view{job: job, pods: r.memories.asStripped(job, pods), now: r.now(), backoff: before, options: r.options, hold: where.hold})
	failed := r.apply(ctx, job, p, where.group)
	p.account()
	if len(p.strip) > 0 {
		// The status has the Pods before they lose their finalizers: a process that is killed
		// in between neither forgets them nor counts them twice.
		if job, err = r.flush(ctx, job, p); err != nil {
			return again(err, failed)
		}
		r.counts.applied(p)
		r.memories.remember(job, p) // these Pods are new only once
	}
	stripped, err := r.strip(ctx, p.strip)
	if len(stripped) > 0 {
		r.memories.noteStripped(job, stripped)
	}
	failed = errors.Join(failed, err)
	p.settle(stripped)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	if job, err = r.flush(ctx, job, p); err != nil {
		return again(err, failed)
	}
	r.memories.remember(job, p)
	if p.more && failed == nil {
		p.wake(time.Second)
	}
	return controller.Result{After: p.after, Always: true}, failed // a deadline ends also while Pods cannot be created
}

// again returns how a run ends whose status was not written. After a conflict nothing has failed:
// the cache will show the change that it comes from.
func again(err, failed error) (controller.Result, error) {
	switch {
	case failed != nil:
		return controller.Result{}, errors.Join(failed, err)
	case errors.Is(err, errChanged):
		return controller.Result{Again: true}, nil
	case apierrors.IsNotFound(err):
		return controller.Result{}, nil // the Job is gone
	}
	return controller.Result{}, err
}

// apply creates, in a PodGroup, and deletes the Pods of a plan. It notes in the plan what was done.
func (r *reconciler) apply(ctx context.Context, job *batchv1.Job, p *plan, group string) error {
	owner := podwriter.Owner{Object: job, Kind: jobs}
	if len(p.create) > 0 {
		snapshot := r.pods.Snapshot()
		made, err := r.writer.Create(ctx, owner, newPods(owner, job, p, group), func(name string) bool {
			return snapshot.Get(object.Key{Namespace: job.Namespace, Name: name}).Exists()
		})
		r.counts.created(p, len(made), err)
		p.created(len(made))
		return err
	}
	writer, victims := r.writer, p.stop
	if len(p.remove) > 0 {
		writer, victims = r.remover, p.remove
	}
	if len(victims) == 0 {
		return nil
	}
	deleted, err := writer.Delete(ctx, owner, victims)
	var gone []*corev1.Pod
	for i, pod := range victims {
		if deleted[i] {
			gone = append(gone, pod)
		}
	}
	p.deleted(gone)
	if len(p.remove) > 0 {
		p.untracked(gone)
	}
	p.incomplete = len(gone) < len(victims)
	if apierrors.IsConflict(err) {
		p.more = true // a Pod has changed meanwhile, perhaps in a way that starts no run
		return nil
	}
	return err
}

// flush writes the status of a plan if it has changed, then records the Events of the plan, and
// returns the Job as it is then.
func (r *reconciler) flush(ctx context.Context, job *batchv1.Job, p *plan) (*batchv1.Job, error) {
	next := *job
	next.Status = *p.status.DeepCopy()
	if !equality.Semantic.DeepEqual(job.Status, next.Status) {
		written, err := r.jobs.UpdateStatus(ctx, &next)
		switch {
		case apierrors.IsConflict(err):
			return job, errChanged
		case err != nil:
			return job, fmt.Errorf("writing the status of Job %s: %w", object.KeyOf(job), err)
		}
		next.ObjectMeta = written.ObjectMeta
		r.counts.wrote(job, &job.Status, &next.Status)
	}
	r.recorder.Record(job, p.events...)
	p.events = nil
	return &next, nil
}

// backoffOf returns the backoff of a Job. After a start of the process it comes from the Pods that
// still exist: see [recovered].
func (r *reconciler) backoffOf(job *batchv1.Job) (backoff, error) {
	if b, known := r.memories.backoff(job); known {
		return b, nil
	}
	if mayHaveFailed(job) {
		pods, err := r.endedPods(job)
		return recovered(job, countedOf(job, pods)), err
	}
	return backoff{}, nil
}

// mayHaveFailed reports whether a Pod of a Job has failed. The status does not count failures that
// the Pod failure policy ignores.
func mayHaveFailed(job *batchv1.Job) bool {
	u := job.Status.UncountedTerminatedPods
	return job.Status.Failed > 0 || u != nil && len(u.Failed) > 0 || u != nil && job.Spec.PodFailurePolicy != nil
}

// endedPods returns the Pods of a Job that have failed. If there are any, it returns those that
// have succeeded too. It decodes no others: there may be 100,000.
func (r *reconciler) endedPods(job *batchv1.Job) ([]*corev1.Pod, error) {
	var failed, succeeded []cache.Item[*corev1.Pod]
	for _, item := range r.pods.Snapshot().ControlledBy(job.Namespace, job.UID) {
		switch in, err := item.Text(phase); {
		case err != nil:
			return nil, err
		case corev1.PodPhase(in) == corev1.PodSucceeded:
			succeeded = append(succeeded, item)
		case corev1.PodPhase(in) == corev1.PodFailed || item.Meta().Deleting():
			failed = append(failed, item)
		}
	}
	if len(failed) == 0 {
		return nil, nil
	}
	return cache.Objects(all(append(failed, succeeded...)))
}

func (r *reconciler) forget(key object.Key) {
	r.memories.forget(key)
	r.writer.Forget(key)
}
