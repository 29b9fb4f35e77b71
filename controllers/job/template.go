// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/podwriter"
)

// indexVariable is the environment variable in which containers find the index of their Pod.
// Source: k8s.io/kubernetes/pkg/controller/job, completionIndexEnvName.
const indexVariable = "JOB_COMPLETION_INDEX"

// prefixMost is how long the part of a Pod's name is that the server adds five letters to.
// Source: k8s.io/apiserver/pkg/storage/names, MaxGeneratedNameLength.
const prefixMost = 58

// newPods returns the Pods that a plan creates. They belong to a PodGroup, if it has a name.
//
// They do not name it as their owner. The garbage collector keeps objects that have an owner left,
// and the PodGroup stays until its Pods have ended: the Pods of a Job that is deleted would run on.
func newPods(owner podwriter.Owner, job *batchv1.Job, p *plan, group string) []*corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	if group != "" {
		template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
	if !slices.Contains(template.Finalizers, batchv1.JobTrackingFinalizer) {
		template.Finalizers = append(template.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if indexed(job) {
		for i := range template.Spec.InitContainers {
			addIndexVariable(&template.Spec.InitContainers[i])
		}
		for i := range template.Spec.Containers {
			addIndexVariable(&template.Spec.Containers[i])
		}
	}
	pods := make([]*corev1.Pod, len(p.create))
	for i, index := range p.create {
		pods[i] = podwriter.FromTemplate(owner, template)
		if index != noIndex {
			setIndex(pods[i], job, index, p.retiring[index])
		}
	}
	return pods
}

// setIndex makes a Pod that of an index. retiring is the Pod of the index that failed last, or nil.
func setIndex(pod *corev1.Pod, job *batchv1.Job, index int, retiring *corev1.Pod) {
	text := strconv.Itoa(index)
	pod.GenerateName = prefix(job.Name, index)
	pod.Spec.Hostname = fmt.Sprintf("%s-%d", job.Name, index)
	pod.Labels = with(pod.Labels, batchv1.JobCompletionIndexAnnotation, text)
	pod.Annotations = with(pod.Annotations, batchv1.JobCompletionIndexAnnotation, text)
	if backsOffPerIndex(job) {
		countFailures(pod, job, retiring)
	}
}

// countFailures notes on a Pod how often Pods of its index have failed.
func countFailures(pod *corev1.Pod, job *batchv1.Job, retiring *corev1.Pod) {
	var counted, ignored int32
	if retiring != nil {
		before, all := failuresOf(retiring)
		counted, ignored = before, all-before
		if judge(job.Spec.PodFailurePolicy, retiring).counts() {
			counted++
		} else {
			ignored++
		}
	}
	pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(int(counted))
	if ignored > 0 {
		pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(int(ignored))
	}
}

// with returns a copy of labels or annotations with one more.
func with(all map[string]string, key, value string) map[string]string {
	copied := make(map[string]string, len(all)+1)
	maps.Copy(copied, all)
	copied[key] = value
	return copied
}

// prefix returns what the name of the Pod of an index begins with: the name of the Job, cut if it
// is too long, and the index.
func prefix(job string, index int) string {
	end := "-" + strconv.Itoa(index) + "-"
	return job[:min(len(job), prefixMost-len(end))] + end
}

// addIndexVariable adds the variable to a container whose template does not name it.
func addIndexVariable(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == indexVariable }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: indexVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation)},
	}})
}

// slot tells the Pods of different indexes apart.
func slot(pod *corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }
