// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"

	"github.com/setpoint-io/setpoint/controller/owned"
)

// templateAnnotation is where the controller of a Job that is part of something larger names the
// template of its Workload from which the Job is to make its PodGroup.
// Source: k8s.io/kubernetes/pkg/apis/scheduling, GroupTemplateNameAnnotation.
const templateAnnotation = "scheduling.k8s.io/group-template-name"

// newWorkload returns the Workload of a Job that nothing controls. It has one template.
// Source: k8s.io/component-helpers/scheduling/schedulingv1/workloadbuilder, and
// k8s.io/kubernetes/pkg/api/job, WorkloadItemForJob.
func newWorkload(job *batchv1.Job) *schedulingv1beta1.Workload {
	return &schedulingv1beta1.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: workloadName(job.Name, job.UID),
			OwnerReferences: []metav1.OwnerReference{owned.By(job, jobs.GroupVersionKind())},
		},
		Spec: schedulingv1beta1.WorkloadSpec{
			ControllerRef:     &schedulingv1beta1.TypedLocalObjectReference{APIGroup: jobs.Group, Kind: jobs.Kind, Name: job.Name},
			PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{groupTemplate(job)},
		},
	}
}

// groupTemplate returns spec.scheduling of a Job in the form that a Workload has it. A Job without
// it has its Pods scheduled one by one.
func groupTemplate(job *batchv1.Job) schedulingv1beta1.PodGroupTemplate {
	template := schedulingv1beta1.PodGroupTemplate{
		Name: templateName(job.Name), PriorityClassName: job.Spec.Template.Spec.PriorityClassName,
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}},
	}
	wanted := job.Spec.Scheduling
	if wanted == nil {
		return template
	}
	if least, gang := minCount(job); gang {
		template.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: least}}
	}
	if c := wanted.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		template.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{}
		for _, t := range c.Topology {
			template.SchedulingConstraints.Topology = append(template.SchedulingConstraints.Topology, schedulingv1beta1.TopologyConstraint{Key: t.Key})
		}
	}
	template.DisruptionMode = disruptionMode(wanted.DisruptionMode)
	for _, c := range wanted.ResourceClaims {
		template.ResourceClaims = append(template.ResourceClaims, schedulingv1beta1.PodGroupResourceClaim{
			Name: c.Name, ResourceClaimName: c.ResourceClaimName, ResourceClaimTemplateName: c.ResourceClaimTemplateName,
		})
	}
	return template
}

func disruptionMode(mode *schedulingv1alpha3.WorkloadPodGroupDisruptionMode) *schedulingv1beta1.DisruptionMode {
	switch {
	case mode == nil:
	case mode.All != nil:
		return &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	case mode.Single != nil:
		return &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
	}
	return nil
}

// minCount returns how many Pods of a Job must find a place together. gang is false for a Job whose
// Pods are scheduled one by one. A gang without a number is as large as spec.parallelism.
func minCount(job *batchv1.Job) (least int32, gang bool) {
	s := job.Spec.Scheduling
	if s == nil || s.SchedulingPolicy == nil || s.SchedulingPolicy.Basic != nil || s.SchedulingPolicy.Gang == nil {
		return 0, false
	}
	if least := s.SchedulingPolicy.Gang.MinCount; least != nil {
		return *least, true
	}
	return max(1, parallelism(job)), true
}

// newPodGroup returns the PodGroup of a Job from a template of a Workload. A Workload of the Job
// itself owns it too.
func newPodGroup(job *batchv1.Job, workload *schedulingv1beta1.Workload, template *schedulingv1beta1.PodGroupTemplate) *schedulingv1beta1.PodGroup {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workload.Namespace, Name: podGroupName(workload.Name, template.Name),
			OwnerReferences: []metav1.OwnerReference{owned.By(job, jobs.GroupVersionKind())},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			WorkloadRef:           &schedulingv1beta1.WorkloadReference{WorkloadName: workload.Name, TemplateName: template.Name},
			SchedulingPolicy:      *template.SchedulingPolicy.DeepCopy(),
			SchedulingConstraints: template.SchedulingConstraints.DeepCopy(),
			DisruptionMode:        template.DisruptionMode.DeepCopy(),
			PriorityClassName:     template.PriorityClassName,
			ResourceClaims:        template.DeepCopy().ResourceClaims,
			Priority:              template.DeepCopy().Priority,
		},
	}
	if metav1.IsControlledBy(workload, job) {
		group.OwnerReferences = append(group.OwnerReferences, metav1.OwnerReference{
			APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Workload", Name: workload.Name, UID: workload.UID,
		})
	}
	return group
}

// templateOf returns the template of a Workload with a name, or nil.
func templateOf(workload *schedulingv1beta1.Workload, name string) *schedulingv1beta1.PodGroupTemplate {
	templates := workload.Spec.PodGroupTemplates
	i := slices.IndexFunc(templates, func(t schedulingv1beta1.PodGroupTemplate) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &templates[i]
}

// templateName returns the name of the one template of a Workload. It is upstream's, unless that is
// no DNS label: the server refuses such a Workload, for a Job with a dot in its name for example.
// Source: k8s.io/kubernetes/pkg/controller/job, podGroupTemplateName.
func templateName(job string) string {
	const suffix = "-pgt-0"
	if len(validation.IsDNS1123Label(job+suffix)) == 0 {
		return job + suffix
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, job)
	end := "-" + encode(h.Sum32()) + suffix
	label := strings.ReplaceAll(job, ".", "-")
	return label[:min(len(label), validation.DNS1123LabelMaxLength-len(end))] + end
}

// workloadName returns the name of the Workload of a Job: the Job's, cut if it is too long, and a
// hash of the UID.
// Source: k8s.io/kubernetes/pkg/controller/job, computeWorkloadName.
func workloadName(job string, uid types.UID) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump.ForHash(uid)) // a hash accepts everything
	suffix := "-" + encode(h.Sum32())
	return job[:min(len(job), validation.DNS1123SubdomainMaxLength-len(suffix))] + suffix
}

// podGroupName returns the name of the PodGroup that is made from a template of a Workload: both
// names and a hash of them. If they are too long, each gets half of the room at least.
// Source: k8s.io/kubernetes/pkg/controller/job, computePodGroupName.
func podGroupName(workload, template string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, workload+template)
	suffix := encode(h.Sum32())
	room := validation.DNS1123SubdomainMaxLength - len(suffix) - 2
	if len(workload)+len(template) > room {
		forTemplate := min(len(template), max(room/2, room-len(workload)))
		workload, template = workload[:room-forTemplate], template[:forTemplate]
	}
	return fmt.Sprintf("%s-%s-%s", workload, template, suffix)
}

func encode(hash uint32) string { return rand.SafeEncodeString(strconv.FormatUint(uint64(hash), 10)) }
