// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/owned"
)

// follow brings the status up to date with the Jobs: which of them run, and when one last
// succeeded.
func (p *plan) follow(v view) {
	there := map[types.UID]bool{}
	for _, job := range v.jobs {
		there[job.UID] = true
		p.recover(v, job)
		switch ended := finished(job); {
		case ended == "" && !p.isActive(job.UID) && job.DeletionTimestamp == nil:
			p.events.Warning(reasonUnexpected, actionReconcile, "Saw a job that the controller did not create or forgot: %s", job.Name)
		case ended != "" && p.isActive(job.UID):
			p.inactive(job.UID)
			p.events.Normal(reasonCompleted, actionReconcile, "Saw completed job: %s, condition: %v", job.Name, ended)
		}
		if at := job.Status.CompletionTime; finished(job) == batchv1.JobComplete && at != nil &&
			(p.status.LastSuccessfulTime == nil || at.After(p.status.LastSuccessfulTime.Time)) {
			p.status.LastSuccessfulTime = at
		}
	}
	for _, ref := range slices.Clone(p.status.Active) {
		if !there[ref.UID] {
			p.inactive(ref.UID)
			p.events.Normal(reasonMissing, actionReconcile, "Active job went missing: %v", ref.Name)
		}
	}
}

// recover notes a Job that this CronJob started and whose start is not in the status: the
// controller was killed between the two writes. Without it, concurrencyPolicy would not see the
// Job. A Job that is being deleted has made place for another one.
func (p *plan) recover(v view, job *batchv1.Job) {
	slot, ok := slotOf(v.cronJob, job)
	if ok && !slot.After(v.now) && job.DeletionTimestamp == nil {
		p.started(job, slot)
	}
}

// started notes that the Job of a slot was created.
func (p *plan) started(job *batchv1.Job, slot time.Time) {
	if finished(job) == "" && !p.isActive(job.UID) {
		p.status.Active = append(p.status.Active, corev1.ObjectReference{
			Kind: "Job", APIVersion: batchv1.SchemeGroupVersion.String(), Namespace: job.Namespace, Name: job.Name,
			UID: job.UID, ResourceVersion: job.ResourceVersion,
		})
	}
	if last := p.status.LastScheduleTime; last == nil || slot.After(last.Time) {
		p.status.LastScheduleTime = &metav1.Time{Time: slot}
	}
}

func (p *plan) isActive(uid types.UID) bool {
	return slices.ContainsFunc(p.status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

// runs reports whether a Job of a name is active.
func (p *plan) runs(name string) bool {
	return slices.ContainsFunc(p.status.Active, func(ref corev1.ObjectReference) bool { return ref.Name == name })
}

func (p *plan) inactive(uid types.UID) {
	p.status.Active = slices.DeleteFunc(p.status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

// expire chooses the finished Jobs beyond the limits of the history: those that started first.
func (p *plan) expire(v view) {
	limits := map[batchv1.JobConditionType]*int32{
		batchv1.JobComplete: v.cronJob.Spec.SuccessfulJobsHistoryLimit,
		batchv1.JobFailed:   v.cronJob.Spec.FailedJobsHistoryLimit,
	}
	for _, how := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		limit := limits[how]
		if limit == nil {
			continue
		}
		var ended []*batchv1.Job
		for _, job := range v.jobs {
			if job.DeletionTimestamp == nil && finished(job) == how {
				ended = append(ended, job)
			}
		}
		slices.SortFunc(ended, byStart)
		p.expired = append(p.expired, ended[:max(0, len(ended)-int(*limit))]...)
	}
}

// byStart orders Jobs by their start, and those that did not start last.
func byStart(a, b *batchv1.Job) int {
	x, y := a.Status.StartTime, b.Status.StartTime
	switch {
	case x == nil && y == nil:
		return cmp.Compare(a.Name, b.Name)
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	return cmp.Or(x.Compare(y.Time), cmp.Compare(a.Name, b.Name))
}

// finished returns how a Job ended: JobComplete, JobFailed, or nothing.
func finished(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// jobName returns the name of the Job of a slot. It is the same for each attempt, so that a slot
// never starts two Jobs.
// Source: k8s.io/kubernetes/pkg/controller/cronjob, getJobName.
func jobName(cronJob *batchv1.CronJob, slot time.Time) string {
	return cronJob.Name + "-" + strconv.FormatInt(slot.Unix()/60, 10)
}

// slotOf returns the slot that a Job was created for, if this CronJob created it.
func slotOf(cronJob *batchv1.CronJob, job *batchv1.Job) (time.Time, bool) {
	slot, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil || job.Name != jobName(cronJob, slot) {
		return time.Time{}, false
	}
	return slot, true
}

// newJob returns the Job of a slot.
func newJob(cronJob *batchv1.CronJob, slot time.Time) (*batchv1.Job, error) {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	zone := ""
	if cronJob.Spec.TimeZone != nil {
		zone = *cronJob.Spec.TimeZone
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cronJob.Namespace, Name: jobName(cronJob, slot), Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{owned.By(cronJob, kind.GroupVersionKind())},
		},
		Spec: template.Spec,
	}
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = slot.In(location).Format(time.RFC3339)
	return job, nil
}
