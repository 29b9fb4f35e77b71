// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "horizontal-pod-autoscaler-controller"

// eventSource is whom Events name, which users filter by.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler.
const eventSource = "horizontal-pod-autoscaler"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many HorizontalPodAutoscalers are worked on at a time.
	Workers int
	// Period is how often the metrics of each are read. Less than a second is a second.
	Period time.Duration
	// DownscaleStabilization is for how long a recommendation keeps the replicas from becoming
	// fewer, where spec.behavior does not say.
	DownscaleStabilization time.Duration
	// Tolerance is how far the ratio of a metric to its target may be from 1 without a change of
	// size, where spec.behavior does not say.
	Tolerance float64
	// CPUInitializationPeriod is for how long after the start of a Pod its CPU usage counts only if
	// it was measured after the Pod became ready.
	CPUInitializationPeriod time.Duration
	// InitialReadinessDelay is the time after the start of a Pod within which a Pod that becomes
	// unready counts as one that was never ready.
	InitialReadinessDelay time.Duration
	// KeepZero has targets without replicas stay so, even if this controller removed the replicas.
	KeepZero bool
	// IgnoreGeneration has a change of the spec wait for the next period, and leaves
	// status.observedGeneration out.
	IgnoreGeneration bool
}

// period returns how often metrics are read.
func (o *Options) period() time.Duration { return max(o.Period, time.Second) }

// kind is what HorizontalPodAutoscalers are.
var kind = object.Resource{Group: autoscalingv2.GroupName, Version: "v2", Plural: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true}

// Rights returns what the controller must be allowed to do. The caller owns the result. They are
// those of upstream's role.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{autoscalingv2.GroupName}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{autoscalingv2.GroupName}, Resources: []string{"horizontalpodautoscalers/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{resourceMetrics}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{customMetrics, externalMetrics}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		events.Rights(),
	}
}

type reconciler struct {
	options     Options
	client      *client.Client
	autoscalers cache.SharedInformer[*autoscalingv2.HorizontalPodAutoscaler]
	pods        cache.SharedInformer[*corev1.Pod]
	labelled    *selectors.Labelled[*corev1.Pod]
	metrics     *metricsReader
	targets     targetSelectors
	recorder    *events.Recorder
	counts      *counts
	log         *slog.Logger
	now         func() time.Time

	mu       sync.Mutex
	memories map[object.Key]memory
}

// memory is what the controller remembers of a HorizontalPodAutoscaler between two runs.
type memory struct {
	uid     types.UID
	history history
	// scaledAt is when this process last changed the size. It is remembered until the status has it.
	scaledAt time.Time
	// lost is a change whose answer was lost, and that may have been carried out.
	lost *lostChange
}

// lostChange is a change of the size without an answer.
type lostChange struct {
	change
	to int32
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	return build(h, o, time.Now)
}

// build returns the controller with a clock.
func build(h controller.Host, o Options, now func() time.Time) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := newReconciler(h, o, now)
	return r.counts.Of(controller.New(Name, r.reconcile,
		controller.For(r.autoscalers, o.specChanged),
		controller.Reads(r.pods),
		controller.RateLimit[object.Key](&workqueue.Exponential[object.Key]{Base: o.period(), Max: o.period()}),
		controller.Workers(o.Workers),
	)), nil
}

func newReconciler(h controller.Host, o Options, now func() time.Time) *reconciler {
	r := &reconciler{
		options:     o,
		client:      h.Client(),
		autoscalers: cache.Informer[*autoscalingv2.HorizontalPodAutoscaler](h).With(client.MetadataAnswer()),
		pods:        cache.Informer[*corev1.Pod](h),
		metrics:     newMetricsReader(h.Client(), o.period()),
		recorder:    h.Recorder(eventSource),
		log:         h.Logger().With("controller", Name),
		now:         now,
		memories:    map[object.Key]memory{},
	}
	r.labelled = selectors.NewLabelled(r.pods)
	r.counts = newCounts(func() int { return r.autoscalers.Snapshot().Len() })
	r.counts.StaleSyncSkips("horizontal_pod_autoscaler_controller")
	return r
}

// specChanged chooses the changes of a HorizontalPodAutoscaler that need not wait for the period. The
// API server counts the generations of the spec since Kubernetes 1.37.
func (o *Options) specChanged(e cache.Event[*autoscalingv2.HorizontalPodAutoscaler]) bool {
	if !e.Old.Exists() || !e.New.Exists() {
		return true
	}
	was, is := e.Old.Meta(), e.New.Meta()
	return was.UID != is.UID || !o.IgnoreGeneration && was.Generation != is.Generation
}

// reconcile decides once about the size of a target. It runs again after the period, whether it
// failed or not.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	hpa, err := r.autoscalers.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	began := time.Now()
	p, result, err := r.run(ctx, hpa)
	r.counts.ran(req.Key, &p, err, time.Since(began))
	return result, err
}

// run is a run for a HorizontalPodAutoscaler. The plan is as far as it got.
func (r *reconciler) run(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler) (p plan, result controller.Result, err error) {
	now := r.now()
	t, err := findTarget(ctx, r.client, hpa)
	if err != nil {
		if ctx.Err() != nil {
			return p, result, err
		}
		// A target that cannot be read for a moment still has its selector: another HorizontalPodAutoscaler of the same
		// Pods must not scale them meanwhile.
		if key := object.KeyOf(hpa); apierrors.IsNotFound(err) || !r.targets.knownFor(key, hpa.Spec.ScaleTargetRef) {
			r.targets.put(key, selection{})
		}
		p = unreadable(hpa, now, err)
		result, err = r.end(ctx, hpa, &p)
		return p, result, err
	}
	s := snapshot{hpa: hpa, scale: t.scale, history: r.begin(hpa, t.scale.Spec.Replicas, now), now: now}
	if r.options.byMetrics(&s) {
		if err := r.measure(ctx, &s, &t); err != nil {
			return p, result, err
		}
	}
	p = r.options.decide(&s)
	r.update(hpa, func(m *memory) { m.history = *p.history })
	if p.rescale {
		switch is, err := r.rescale(ctx, &s, &t, &p); {
		case err != nil:
			return p, result, err
		case is == moved:
			return p, controller.Result{After: time.Second}, nil // by the new size
		case is == gone:
			return p, controller.Result{After: r.options.period()}, nil
		}
	}
	result, err = r.end(ctx, s.hpa, &p)
	return p, result, err
}

// measure reads the Pods and the metrics.
func (r *reconciler) measure(ctx context.Context, s *snapshot, t *target) error {
	key := object.KeyOf(s.hpa)
	ignores, wrong := ignoresForeign(s.hpa)
	s.annotation = wrong
	selector, problem := r.targets.parse(key, s.scale.Status.Selector)
	r.targets.put(key, selection{
		text: s.scale.Status.Selector, selector: selector,
		ref: s.hpa.Spec.ScaleTargetRef, target: t.resource.String() + "/" + t.key.Name, own: ignores,
	})
	if problem != nil {
		s.selector = problem
		return nil
	}
	var err error
	if s.pods, err = cache.Objects(r.labelled.Selected(r.pods.Snapshot(), s.hpa.Namespace, selector)); err != nil {
		return err
	}
	slices.SortFunc(s.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	own, foreign := divide(s.pods, s.hpa.Spec.ScaleTargetRef, s.scale.UID)
	if s.foreign = foreign; ignores {
		s.pods, s.foreign.ignored = own, true
	}
	if keys := r.targets.sharing(key, s.pods); len(keys) > 1 {
		s.selector = ambiguous(s.scale.Status.Selector, keys)
		return nil
	}
	if s.selector = stillAmbiguous(s.hpa); s.selector != nil && r.unread(key.Namespace) {
		return nil
	}
	s.selector = nil
	s.readings = r.metrics.read(ctx, s.hpa, selector)
	return ctx.Err()
}

// unread reports whether the targets of some HorizontalPodAutoscalers of a namespace are yet to be read.
func (r *reconciler) unread(namespace string) bool {
	for key := range r.autoscalers.Snapshot().Namespace(namespace) {
		if !r.targets.known(key) {
			return true
		}
	}
	return false
}

// rescale writes the new size. That it was refused is in the plan, and no error.
func (r *reconciler) rescale(ctx context.Context, s *snapshot, t *target, p *plan) (outcome, error) {
	if first, needed := p.first(s, &r.options); needed {
		var err error
		if s.hpa, err = r.write(ctx, s.hpa, &first); err != nil {
			return refused, err
		}
	}
	is, err := t.resize(ctx, r.client, p.replicas)
	switch {
	case is == resized:
		p.scaled(s, &r.options)
		r.update(s.hpa, func(m *memory) { m.history, m.scaledAt = *p.history, p.now })
		r.log.Info("scaled", "object", object.KeyOf(s.hpa).String(), "target", targetOf(s.hpa), "from", s.current(), "to", p.replicas, "reason", p.why)
	case is == refused && ctx.Err() != nil:
		return refused, ctx.Err()
	case is == refused:
		p.notScaled(s, err)
		p.err = fmt.Errorf("scaling %s to %d: %w", targetOf(s.hpa), p.replicas, err)
		if client.Unanswered(err) {
			p.maybeScaled(s, &r.options)
			r.update(s.hpa, func(m *memory) { m.lost = &lostChange{change{at: p.now, by: p.replicas - s.current()}, p.replicas} })
		}
	}
	return is, nil
}

// end records what was decided and writes the status. What is wrong with a target or a metric is in
// the status, in an Event and in the reasons of the run: it is no failure of the run, except for a
// missing right and a server that does not answer.
func (r *reconciler) end(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, p *plan) (controller.Result, error) {
	r.recorder.Record(hpa, p.events...)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	// A status that could not be written after a change of the size is completed later.
	if at := r.recall(hpa).scaledAt; !at.IsZero() && (p.status.LastScaleTime == nil || p.status.LastScaleTime.Time.Before(at)) {
		p.status.LastScaleTime = &metav1.Time{Time: at}
	}
	_, err := r.write(ctx, hpa, p)
	if err == nil {
		r.update(hpa, func(m *memory) { m.scaledAt = time.Time{} })
	}
	if client.LacksRight(p.err) || client.Unreachable(p.err) {
		err = errors.Join(p.err, err)
	}
	return controller.Result{After: r.options.period()}, err
}

// write writes the status of a plan, and the history with it, if one of them says something new. It
// returns the object as it was written. A conflict comes from a user's change of the spec, or from another
// manager: the status is written to the newest state, because what was done must not be forgotten.
func (r *reconciler) write(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, p *plan) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	changed := !equality.Semantic.DeepEqual(hpa.Status, p.status)
	size := p.status.DesiredReplicas
	if !changed && (p.history == nil || !p.history.news(hpa, size, p.now, &r.options)) {
		return hpa, nil
	}
	for tries := 0; ; tries++ {
		next := *hpa
		next.Status = p.status
		if p.history != nil {
			next.Annotations = annotate(hpa, p.history.save(size))
		}
		written, err := r.autoscalers.UpdateStatus(ctx, &next)
		switch {
		case err == nil:
			next.ResourceVersion = written.ResourceVersion
			return &next, nil
		case apierrors.IsNotFound(err):
			return hpa, nil
		case !apierrors.IsConflict(err) || tries == mostConflicts:
			return hpa, fmt.Errorf("writing the status: %w", err)
		}
		live, failure := r.autoscalers.Server().Get(ctx, object.KeyOf(hpa))
		if failure != nil || live.UID != hpa.UID {
			return hpa, fmt.Errorf("writing the status: %w", err)
		}
		hpa = live
	}
}

// begin returns the history of a HorizontalPodAutoscaler, whose target is to have the current number of
// replicas. The first time it takes over from another process.
func (r *reconciler) begin(hpa *autoscalingv2.HorizontalPodAutoscaler, current int32, now time.Time) history {
	m := r.recall(hpa)
	if m.uid == "" {
		m = memory{uid: hpa.UID, history: r.options.takeOver(hpa, current, now)}
	}
	if m.lost != nil && current == m.lost.to {
		m.history, m.scaledAt = m.history.changed(m.lost.change), m.lost.at
	}
	m.lost = nil
	r.remember(object.KeyOf(hpa), m)
	return m.history
}

// update changes what is remembered of a HorizontalPodAutoscaler, if it is known.
func (r *reconciler) update(hpa *autoscalingv2.HorizontalPodAutoscaler, change func(*memory)) {
	if m := r.recall(hpa); m.uid != "" {
		change(&m)
		r.remember(object.KeyOf(hpa), m)
	}
}

// recall returns what is remembered. Another object of the name is new.
func (r *reconciler) recall(hpa *autoscalingv2.HorizontalPodAutoscaler) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.memories[object.KeyOf(hpa)]; m.uid == hpa.UID {
		return m
	}
	return memory{}
}

func (r *reconciler) remember(key object.Key, m memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memories[key] = m
}

func (r *reconciler) forget(key object.Key) {
	r.targets.forget(key)
	r.counts.forget(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
}
