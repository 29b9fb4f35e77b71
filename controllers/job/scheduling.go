// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
)

// scheduling makes the objects that tell the scheduler which Pods of a Job belong together: a
// Workload, which says how, and a PodGroup, which the Pods name. It is nil with the feature gate
// WorkloadWithJob off.
type scheduling struct {
	parts     cache.Index[*batchv1.Job] // Jobs by their controller, as ofController returns it
	workloads cache.SharedInformer[*schedulingv1beta1.Workload]
	groups    cache.SharedInformer[*schedulingv1beta1.PodGroup]
	recorder  *events.Recorder
}

func newScheduling(h controller.Host, jobs cache.SharedInformer[*batchv1.Job]) *scheduling {
	return &scheduling{
		parts: cache.NewIndex(jobs, func(job cache.Item[*batchv1.Job]) ([]string, error) {
			if ref := job.Meta().Controller(); ref != nil {
				return ofController(job.Key().Namespace, ref), nil
			}
			return nil, nil
		}),
		recorder:  h.Recorder(Name),
		workloads: cache.Informer[*schedulingv1beta1.Workload](h),
		groups:    cache.Informer[*schedulingv1beta1.PodGroup](h),
	}
}

// placement is what the new Pods of a Job are to say about their scheduling.
type placement struct {
	group string             // the name of their PodGroup; "" is none
	hold  *controller.Reason // why no Pod may be created now, or nil
	why   []controller.Reason
}

// because states why the Pods are scheduled one by one.
func (p *placement) because(text, ends string, params ...any) {
	p.why = append(p.why, reason(codeNoGang, text, ends, params...))
}

// of returns where the Pods of a Job belong. It makes the Workload and the PodGroup of a Job that
// has never started, and keeps the size of a gang as the Job wants it. The placement holds also if
// there is an error.
func (s *scheduling) of(ctx context.Context, job *batchv1.Job, pods []*corev1.Pod) (p placement, err error) {
	switch {
	case s == nil:
		if job.Spec.Scheduling != nil {
			p.because("spec.scheduling has no effect, because the feature gate WorkloadWithJob is off", "the gate is on")
		}
		return p, nil
	case job.Spec.Template.Spec.SchedulingGroup != nil, job.DeletionTimestamp != nil:
		return p, nil // its Pods name the PodGroup of another program, or there are no new ones
	}
	parent := metav1.GetControllerOf(job)
	template, delegated := job.Annotations[templateAnnotation]
	switch {
	case parent == nil:
		err = s.own(ctx, job, isNew(job, pods), &p)
	case delegated:
		err = s.delegated(ctx, job, parent, template, isNew(job, pods), &p)
	case job.Spec.Scheduling != nil:
		p.because("spec.scheduling has no effect, because the Job belongs to {kind} {name}, which has not set the annotation {annotation}", "",
			"kind", parent.Kind, "name", parent.Name, "annotation", templateAnnotation)
	}
	if err != nil && p.group == "" {
		p.hold = new(reason(codeNoPodGroup, "the PodGroup of its Pods could not be made: {message}", "it can be made", "message", err))
	}
	return p, err
}

// ofController returns what stands for the controller of an object in an index.
func ofController(namespace string, ref *metav1.OwnerReference) []string {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil // no Workload can name such a controller
	}
	return []string{controllerText(namespace, gv.Group, ref.Kind, ref.Name)}
}

func controllerText(namespace, group, kind, name string) string {
	return namespace + "/" + group + "/" + kind + "/" + name
}

// jobsOfWorkload is a mapping from a Workload to its Job, or to the Jobs of its controller.
func (s *scheduling) jobsOfWorkload(item cache.Item[*schedulingv1beta1.Workload], add func(object.Key)) {
	workload, err := item.Object()
	if err != nil || workload.Spec.ControllerRef == nil {
		return
	}
	ref, namespace := workload.Spec.ControllerRef, item.Key().Namespace
	if ref.APIGroup == jobs.Group && ref.Kind == jobs.Kind {
		add(object.Key{Namespace: namespace, Name: ref.Name})
		return
	}
	for key := range s.parts.Find(controllerText(namespace, ref.APIGroup, ref.Kind, ref.Name)) {
		add(key)
	}
}

// jobOfGroup is a mapping from a PodGroup to the Job that controls it.
func jobOfGroup(item cache.Item[*schedulingv1beta1.PodGroup], add func(object.Key)) {
	if ref := jobRef(item.Meta()); ref != nil {
		add(object.Key{Namespace: item.Key().Namespace, Name: ref.Name})
	}
}

// isNew reports whether a Job has never started. One that has started without a PodGroup goes on
// without: it may be older than the feature gate.
// Source: k8s.io/kubernetes/pkg/controller/job, isNewJob.
func isNew(job *batchv1.Job, pods []*corev1.Pod) bool {
	s := &job.Status
	return len(pods) == 0 && s.StartTime == nil && s.Succeeded == 0 && s.Failed == 0 && find(s.Conditions, batchv1.JobSuspended) == nil
}

// own places the Pods of a Job that nothing controls: the Job has a Workload of its own.
func (s *scheduling) own(ctx context.Context, job *batchv1.Job, fresh bool, p *placement) error {
	workloads, err := ownedBy(s.workloads, job, func(w *schedulingv1beta1.Workload) bool {
		ref := w.Spec.ControllerRef
		return ref != nil && ref.APIGroup == jobs.Group && ref.Kind == jobs.Kind && ref.Name == job.Name
	})
	if err != nil {
		return err
	}
	var workload *schedulingv1beta1.Workload
	switch {
	case len(workloads) > 1:
		p.because("the Job owns {count} Workloads, so its Pods are scheduled one by one", "one of them is left", "count", len(workloads))
		return nil
	case len(workloads) == 1:
		workload = workloads[0]
	case !fresh:
		p.startedWithout(job)
		return nil
	default:
		if workload, err = s.createWorkload(ctx, job); err != nil {
			return err
		}
	}
	if n := len(workload.Spec.PodGroupTemplates); n != 1 {
		p.hold = new(reason(codeNoPodGroup, "the Workload {name} of the Job has {count} PodGroup templates, and must have one", "it has one", "name", workload.Name, "count", n))
		return nil
	}
	template := &workload.Spec.PodGroupTemplates[0]
	group, err := s.group(ctx, job, workload, template, fresh, p)
	if err != nil {
		return err
	}
	least, gang := minCount(job)
	if !gang {
		return nil
	}
	if g := template.SchedulingPolicy.Gang; g != nil && g.MinCount != least {
		if err := s.resizeWorkload(ctx, workload, least); err != nil {
			return err
		}
	}
	return s.resize(ctx, group, least)
}

// delegated places the Pods of a Job whose controller has the Workload, and leaves the PodGroup to
// the Job.
func (s *scheduling) delegated(ctx context.Context, job *batchv1.Job, parent *metav1.OwnerReference, name string, fresh bool, p *placement) error {
	workload, err := s.workloadOf(ctx, job.Namespace, parent, fresh)
	if err != nil {
		return err
	}
	if workload == nil {
		p.because("no Workload belongs to {kind} {name}, so the Pods are scheduled one by one", "", "kind", parent.Kind, "name", parent.Name)
		return nil
	}
	template := templateOf(workload, name)
	if template == nil {
		p.because("the Workload {workload} has no PodGroup template {template}, so the Pods are scheduled one by one", "",
			"workload", workload.Name, "template", name)
		return nil
	}
	group, err := s.group(ctx, job, workload, template, fresh, p)
	if gang := template.SchedulingPolicy.Gang; err == nil && gang != nil {
		err = s.resize(ctx, group, gang.MinCount)
	}
	return err
}

// group returns the PodGroup that a Job owns in a Workload, or nil. It makes the one of a new Job.
func (s *scheduling) group(ctx context.Context, job *batchv1.Job, workload *schedulingv1beta1.Workload, template *schedulingv1beta1.PodGroupTemplate, fresh bool, p *placement) (*schedulingv1beta1.PodGroup, error) {
	groups, err := ownedBy(s.groups, job, func(g *schedulingv1beta1.PodGroup) bool {
		return g.Spec.WorkloadRef != nil && g.Spec.WorkloadRef.WorkloadName == workload.Name
	})
	if err != nil {
		return nil, err
	}
	var group *schedulingv1beta1.PodGroup
	switch {
	case len(groups) > 1:
		p.because("the Job owns {count} PodGroups of the Workload {workload}, so its Pods are scheduled one by one", "one of them is left",
			"count", len(groups), "workload", workload.Name)
		return nil, nil
	case len(groups) == 1:
		group = groups[0]
	case !fresh:
		p.startedWithout(job)
		return nil, nil
	default:
		if group, err = s.createGroup(ctx, job, newPodGroup(job, workload, template)); err != nil {
			return nil, err
		}
	}
	p.group = group.Name
	return group, nil
}

// startedWithout says that the Pods of a Job are in no PodGroup, if the Job wants one.
func (p *placement) startedWithout(job *batchv1.Job) {
	if job.Spec.Scheduling != nil {
		p.because("the Job has started without a PodGroup, so its Pods are scheduled one by one", "")
	}
}

// workloadOf returns the Workload that belongs to the controller of a Job, or nil. For a new Job the
// server answers if the cache shows none: the Workload may be as new as the Job.
func (s *scheduling) workloadOf(ctx context.Context, namespace string, parent *metav1.OwnerReference, fresh bool) (*schedulingv1beta1.Workload, error) {
	belongs := func(w *schedulingv1beta1.Workload) bool {
		ref := w.Spec.ControllerRef
		return ref != nil && slices.Contains(ofController(namespace, parent), controllerText(namespace, ref.APIGroup, ref.Kind, ref.Name))
	}
	for _, item := range s.workloads.Snapshot().Namespace(namespace) {
		w, err := item.Object()
		if err != nil || belongs(w) {
			return w, err
		}
	}
	if !fresh {
		return nil, nil
	}
	all, _, err := s.workloads.Server().List(ctx, client.Selection{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("listing the Workloads of the namespace: %w", err)
	}
	if i := slices.IndexFunc(all, belongs); i >= 0 {
		return all[i], nil
	}
	return nil, nil
}

// ownedBy returns the objects that a Job controls and that match.
func ownedBy[T object.Object](informer cache.SharedInformer[T], job *batchv1.Job, matches func(T) bool) (all []T, err error) {
	for _, item := range informer.Snapshot().ControlledBy(job.Namespace, job.UID) {
		o, err := item.Object()
		if err != nil {
			return nil, err
		}
		if matches(o) {
			all = append(all, o)
		}
	}
	return all, nil
}

func (s *scheduling) createWorkload(ctx context.Context, job *batchv1.Job) (*schedulingv1beta1.Workload, error) {
	made, fresh, err := createOrFind(ctx, s.workloads, job, newWorkload(job))
	switch {
	case err != nil && !client.NamespaceGone(err):
		s.recorder.Warning(job, reasonWorkloadFailed, actionCreate, "Failed to create Workload for Job %s: %v", job.Name, err)
	case fresh:
		s.recorder.Normal(job, reasonWorkloadCreated, actionCreate, "Created Workload %s for Job %s", made.Name, job.Name)
	}
	return made, err
}

func (s *scheduling) createGroup(ctx context.Context, job *batchv1.Job, group *schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroup, error) {
	made, fresh, err := createOrFind(ctx, s.groups, job, group)
	switch {
	case err != nil && !client.NamespaceGone(err):
		s.recorder.Warning(job, reasonPodGroupFailed, actionCreate, "Failed to create PodGroup for Job %s: %v", job.Name, err)
	case fresh:
		s.recorder.Normal(job, reasonPodGroupCreated, actionCreate, "Created PodGroup %s for Job %s", made.Name, job.Name)
	}
	return made, err
}

// createOrFind creates an object that a Job controls. The name follows from the Job's UID, so an
// object that has the name already is that of an earlier create, whose answer was lost.
func createOrFind[T object.Object](ctx context.Context, informer cache.SharedInformer[T], job *batchv1.Job, o T) (made T, fresh bool, err error) {
	made, err = informer.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return made, err == nil, err
	}
	there, getErr := informer.Server().Get(ctx, object.KeyOf(o))
	if getErr == nil && metav1.IsControlledBy(there, job) {
		return there, false, nil
	}
	return made, false, err
}

// resizeWorkload writes the size of a gang into the one template of a Workload. Other fields stay,
// those included that this version does not know.
func (s *scheduling) resizeWorkload(ctx context.Context, workload *schedulingv1beta1.Workload, least int32) error {
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": workload.UID},
		{"op": "test", "path": "/spec/podGroupTemplates/0/name", "value": workload.Spec.PodGroupTemplates[0].Name},
		{"op": "replace", "path": "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", "value": least},
	})
	if err != nil {
		return err
	}
	key := object.KeyOf(workload)
	_, err = s.workloads.Patch(ctx, key, client.Patch{Type: types.JSONPatchType, Data: data})
	if err != nil && !client.AbsentAt(err, key) {
		return fmt.Errorf("writing the size of the gang into Workload %s: %w", workload.Name, err)
	}
	return nil
}

// resize writes the size of a gang into a PodGroup, if there is one and it is a gang.
func (s *scheduling) resize(ctx context.Context, group *schedulingv1beta1.PodGroup, least int32) error {
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil || group.Spec.SchedulingPolicy.Gang.MinCount == least {
		return nil
	}
	patch, err := client.MergePatch(map[string]any{
		"metadata": map[string]any{"uid": group.UID},
		"spec":     map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": least}}},
	})
	if err != nil {
		return err
	}
	key := object.KeyOf(group)
	if _, err = s.groups.Patch(ctx, key, patch); err != nil && !client.AbsentAt(err, key) {
		return fmt.Errorf("writing the size of the gang into PodGroup %s: %w", group.Name, err)
	}
	return nil
}
