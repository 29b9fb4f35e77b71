// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "resourcequota-controller"

const (
	// discoverAgain is the time between two discoveries, and discoverSoon how soon after a change
	// of a custom kind one follows. Source of the former:
	// k8s.io/kubernetes/cmd/kube-controller-manager/app, core.go.
	discoverAgain = 30 * time.Second
	discoverSoon  = 250 * time.Millisecond
	// soon is how long a change of an object waits for others, and pace the least time between
	// two writes of a status for such changes: each write can conflict with admission.
	soon = 100 * time.Millisecond
	pace = time.Second
	// urgent is the least time between two writes of a status while so little of the quota is left
	// that the API server may refuse what was just made room for.
	urgent = 20 * time.Millisecond
	// lookAgain is the time between two looks for kinds whose watch fails.
	lookAgain = 10 * time.Second
	// again is how soon a run follows that could not count a kind.
	again = 5 * time.Second
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many ResourceQuotas are worked on at a time.
	Workers int
	// SyncPeriod is how often the sums of each ResourceQuota are compared with a full count. With
	// 0 or less they are not.
	SyncPeriod time.Duration
}

// kind is what ResourceQuotas are.
var kind = object.Resource{Version: "v1", Plural: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}

// Rights returns what the controller must be allowed to do. Which kinds there are is the cluster's
// choice, and quotas can limit all of them. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"resourcequotas/status"}, Verbs: []string{"update"}},
		events.Rights(),
	}
}

// resourceQuotas is the controller: a loop over ResourceQuotas, and what watches the kinds that
// they limit.
type resourceQuotas struct {
	*controller.Controller
	options   Options
	quotas    cache.SharedInformer[*corev1.ResourceQuota]
	books     books
	watches   *watches
	devices   devices
	discovery *discovery.Follower
	recorder  *events.Recorder
	log       *slog.Logger
	mended    counter
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &resourceQuotas{
		options: o,
		books:   books{longest: inFlight},
		// Their managedFields say when admission wrote the status.
		quotas:   cache.Informer[*corev1.ResourceQuota](h, cache.WithManagedFields()).With(client.MetadataAnswer()),
		recorder: h.Recorder(Name),
		log:      h.Logger().With("controller", Name),
	}
	r.watches = &watches{
		host: h, log: r.log, changed: r.changed, wake: r.wake,
		open: map[want]*watch{}, needs: map[object.Key][]want{},
	}
	r.discovery = discovery.NewFollower(h.Client().Discover, r.log, discoverSoon, discoverAgain)
	r.Controller = controller.New(Name, r.reconcile,
		controller.For(r.quotas, rewritten),
		controller.Delayed(pace, controller.Watches(r.quotas, controller.SameKey)),
		controller.Resync(max(o.SyncPeriod, 0)),
		controller.Workers(o.Workers),
		controller.Fair(),
	)
	r.Feed("quotas without a status", r.followUncounted)
	r.Feed("discovery", r.followKinds)
	r.Feed("watches that fail", r.followTroubles)
	return r, nil
}

// Run works until ctx ends and nothing of the controller runs any more.
func (r *resourceQuotas) Run(ctx context.Context) error {
	defer r.watches.end()
	return r.Controller.Run(ctx)
}

// rewritten chooses the changes of quotas that concern more than status.used, which admission
// writes with each object.
func rewritten(e cache.Event[*corev1.ResourceQuota]) bool {
	if !e.Old.Exists() || !e.New.Exists() || e.Kind == cache.Resync {
		return true
	}
	was, err := e.Old.Object()
	if err != nil {
		return true
	}
	is, err := e.New.Object()
	return err != nil || was.UID != is.UID || !same(was.Spec.Hard, is.Spec.Hard) || !same(was.Status.Hard, is.Status.Hard)
}

// followUncounted runs the quotas first whose status is not complete: until it is, the API server
// refuses all that they limit.
func (r *resourceQuotas) followUncounted(ctx context.Context, _ func(object.Key)) {
	handler, err := r.quotas.AddHandler(func(e cache.Event[*corev1.ResourceQuota]) {
		if !e.New.Exists() {
			return
		}
		if q, err := e.New.Object(); err == nil && isUncounted(q) {
			r.Queue().AddWith(workqueue.Add{Priority: workqueue.High, Cause: workqueue.Cause{
				Source: r.quotas.Kind(), Verb: e.Kind.String(), Version: string(e.New.Meta().Version),
				Ref: object.Ref{Kind: kind.Kind, Key: e.Key(), UID: q.UID},
			}}, e.Key())
		}
	}, cache.HandlerOptions{Name: Name})
	if err != nil {
		r.log.Warn("quotas without a complete status wait for their turn", "error", err)
		return
	}
	<-ctx.Done()
	handler.Remove()
}

// isUncounted reports whether the status of a quota lacks a limit or what is used of it.
func isUncounted(q *corev1.ResourceQuota) bool {
	for name := range q.Spec.Hard {
		if _, counted := q.Status.Used[name]; !counted {
			return true
		}
	}
	return !same(q.Spec.Hard, q.Status.Hard)
}

// followKinds follows which kinds the server serves.
func (r *resourceQuotas) followKinds(ctx context.Context, _ func(object.Key)) {
	var definers definers
	defer definers.end()
	follow := func(_ context.Context, set discovery.Set) {
		definers.follow(r, set)
		r.watches.serve(set)
	}
	if r.discovery.First(ctx, func(ctx context.Context, set discovery.Set) bool { follow(ctx, set); return true }) {
		r.discovery.Run(ctx, follow)
	}
}

// followTroubles says of kinds that cannot be watched that their count may be old, and when that ends.
func (r *resourceQuotas) followTroubles(ctx context.Context, _ func(object.Key)) {
	every := time.NewTicker(lookAgain)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			r.watches.look()
		case <-ctx.Done():
			return
		}
	}
}

// wake enqueues quotas.
func (r *resourceQuotas) wake(cause workqueue.Cause, quotas ...object.Key) {
	r.Queue().AddWith(workqueue.Add{Cause: cause}, quotas...)
}

// changed takes a change of an object over into the accounts of its namespace.
func (r *resourceQuotas) changed(w want, v view, m object.Meta, cause workqueue.Cause) {
	if w.kind == deviceClasses {
		r.classesChanged(v, cause)
		return
	}
	for _, a := range r.books.in(m.Namespace) {
		if wait, differs := r.recount(a, w, v, m); differs {
			r.Queue().AddWith(workqueue.Add{After: wait, Cause: cause}, a.key)
		}
	}
}

// recount takes a change of an object over into an account, and reports whether that changes its
// sums, and how long the write of the status can wait.
func (r *resourceQuotas) recount(a *account, w want, v view, m object.Meta) (wait time.Duration, differs bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sources[w.kind].view != v {
		return 0, false // the account counts the kind in another way, or not at all
	}
	now := time.Now()
	around := r.devices.around(a, now)
	for _, o := range related(a, w.kind, m) {
		changed, err := a.refresh(o.kind, o.name, around)
		if err != nil {
			r.log.Warn("an object cannot be counted; status.used keeps its value", "object", a.key.Namespace+"/"+o.name, "kind", o.kind.String(), "quota", a.key.String(), "error", err)
			delete(a.sources, o.kind) // the run counts the kind again
			changed = true
		}
		differs = differs || changed
	}
	if a.isTight() {
		return max(0, a.wrote.Add(urgent).Sub(now)), differs
	}
	return max(soon, a.wrote.Add(pace).Sub(now)), differs
}

// classesChanged takes over the DeviceClasses. The quotas that depend on them are counted again.
func (r *resourceQuotas) classesChanged(v view, cause workqueue.Cause) {
	differs, err := r.devices.load(v)
	if err != nil {
		r.log.Warn("a DeviceClass cannot be read; the resources of the others stay as they were", "error", err)
		return
	}
	if !differs {
		return
	}
	for _, a := range r.books.all() {
		if len(a.quota.OfDevices()) == 0 {
			continue
		}
		a.mu.Lock()
		delete(a.sources, accounting.ResourceClaims)
		a.mu.Unlock()
		r.wake(cause, a.key)
	}
}

// reconcile brings the status of one quota up to date.
func (r *resourceQuotas) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	q, err := r.quotas.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.books.forget(req.Key)
		r.watches.need(req.Key, nil)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	quota, err := accounting.NewQuota(q)
	if err != nil {
		return controller.Result{}, controller.Terminal(err)
	}
	a := r.books.of(q, quota)
	now := time.Now()
	s := r.sync(a, q, now)
	r.report(q, &s)
	if len(s.plan.surplus) > 0 {
		if err := r.relieve(ctx, a, &s); err != nil {
			r.log.Warn("status.used may have too much, and a full count on the server fails", "object", req.Key.String(), "error", err)
			s.wake(now.Add(again))
		}
	}
	conflict, err := r.write(ctx, a, q, &s)
	if err != nil {
		return controller.Result{}, err
	}
	for _, reason := range reasonsOf(q, &s) {
		controller.Because(ctx, reason)
	}
	if conflict {
		return controller.Result{Again: true}, nil
	}
	if !s.next.IsZero() {
		return controller.Result{After: max(s.next.Sub(now), soon)}, nil
	}
	return controller.Result{}, nil
}

// write writes the status of a plan if it is another one. A conflict means that admission, or
// another client, has written the quota meanwhile: the plan is made again from that state.
func (r *resourceQuotas) write(ctx context.Context, a *account, q *corev1.ResourceQuota, s *state) (conflict bool, err error) {
	if s.wait {
		return false, nil
	}
	if !s.plan.changes(q) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.settle(s.plan.freed)
		return false, nil
	}
	next := *q
	next.Status = s.plan.status
	_, err = r.quotas.UpdateStatus(ctx, &next)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.settle(s.plan.freed)
		a.remember(next.Status.Used, s.counted)
		a.wrote = time.Now()
		return false, nil
	case apierrors.IsConflict(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil // it was deleted meanwhile
	case client.Unanswered(err):
		// If the server has not written it, what was freed counts as something that admission
		// added, until it is certain that nothing is in flight.
		a.settle(s.plan.freed)
		a.doubt(next.Status.Used)
	}
	return false, fmt.Errorf("writing the status: %w", err)
}
