// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// expiry returns when a Job has finished and when it is to be deleted. wanted is false
// for one that stays: it has not finished, is being deleted already, or has no TTL.
func expiry(job *batchv1.Job) (finished, at time.Time, wanted bool, err error) {
	if job.DeletionTimestamp != nil || job.Spec.TTLSecondsAfterFinished == nil {
		return finished, at, false, nil
	}
	for _, c := range job.Status.Conditions {
		if (c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed) || c.Status != corev1.ConditionTrue {
			continue
		}
		finished = c.LastTransitionTime.Time
		if finished.IsZero() {
			return finished, at, false, fmt.Errorf("its condition %s does not say when it finished", c.Type)
		}
		return finished, finished.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true, nil
	}
	return finished, at, false, nil
}
