// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "ttl-after-finished-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Jobs are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "delete"},
	}}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	var m controllers.Metrics
	r := &reconciler{
		jobs: cache.Informer[*batchv1.Job](h),
		log:  h.Logger().With("controller", Name),
		late: newLate(&m),
	}
	return m.Of(controller.New(Name, r.reconcile,
		controller.For(r.jobs, predicate.Stays),
		controller.Workers(o.Workers),
	)), nil
}

type reconciler struct {
	jobs cache.SharedInformer[*batchv1.Job]
	log  *slog.Logger
	late prometheus.Observer // between the time of a Job and its deletion, in seconds
}

// reconcile deletes a Job whose time has come, or comes back when it has.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	job, err := r.jobs.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	left, wanted, err := r.look(job)
	if err == nil && wanted && left > 0 {
		controller.Because(ctx, controller.Reason{Code: "JobNotExpired", Text: "the Job has finished, and is kept for {seconds} s (ttlSecondsAfterFinished)",
			Params: controller.With("seconds", *job.Spec.TTLSecondsAfterFinished), Normal: true, Ends: "its time has come, or is changed"})
	}
	if err != nil || !wanted || left > 0 {
		return controller.Result{After: left}, err
	}
	// Its TTL may have changed by now, and it may be another Job.
	job, err = r.jobs.Server().Get(ctx, req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("reading job %s before deleting it: %w", req.Key, err)
	}
	left, wanted, err = r.look(job)
	if err != nil || !wanted || left > 0 {
		return controller.Result{After: left}, err
	}
	due := time.Now().Add(left)
	err = r.jobs.Delete(ctx, object.KeyOf(job), client.IfUID(job.UID), client.Propagation(metav1.DeletePropagationForeground))
	switch {
	case err == nil:
		r.late.Observe(time.Since(due).Seconds())
	case !apierrors.IsNotFound(err):
		return controller.Result{}, fmt.Errorf("deleting job %s, which has finished: %w", req.Key, err)
	}
	return controller.Result{}, nil
}

// look returns how long a Job has left, if it is to be deleted at all. A retry does not
// add what it lacks.
func (r *reconciler) look(job *batchv1.Job) (left time.Duration, wanted bool, err error) {
	finished, at, wanted, err := expiry(job)
	if err != nil {
		return 0, false, controller.Terminal(fmt.Errorf("looking for the end of job %s: %w", object.KeyOf(job), err))
	}
	if !wanted {
		return 0, false, nil
	}
	now := time.Now()
	if finished.After(now) {
		r.log.Warn("a Job has a finish time in the future, and is kept for longer; are the clocks right?", "object", object.KeyOf(job).String(), "finished", finished)
	}
	return at.Sub(now), true, nil
}
