// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cronjob starts Jobs at the times of a schedule.
//
//	┌ minute (0-59)  ┌ day of the month (1-31)  ┌ day of the week (0-6, 0 is Sunday)
//	30      8        *      1-6                 1,3     in the zone of spec.timeZone
//	        └ hour (0-23)   └ month (1-12)
//
// # What it watches and writes
//
// It watches CronJobs and the Jobs that they control. It creates and deletes Jobs, and writes the
// status of CronJobs.
//
// # What holds
//
//   - A slot, which is one time of the schedule, starts one Job at most: the name of the Job is
//     that of the CronJob with the minute of the slot, so a second create is refused.
//   - Of the slots that have passed since the last Job, the latest one starts its Job, unless
//     spec.startingDeadlineSeconds is over. The others are missed. An Event MissSchedule says once
//     which slots were missed, and why.
//   - A Job whose start did not reach the status, because the controller was killed between the
//     two writes, is found by its annotation. So concurrencyPolicy holds after a kill as well.
//   - With concurrencyPolicy Forbid, a slot waits until no Job runs, and then starts late.
//     With Replace, the running Jobs are deleted first.
//   - A local time that a change of clocks skips starts no Job. One that it repeats starts two.
//   - A schedule that is changed counts from its change: its earlier slots start no Job.
//   - Years of missed slots cost no more than one: a search goes day by day (slots.go).
//
// The data of all time zones is in the binary, so the zone does not depend on the machine. A
// schedule without spec.timeZone is in the local zone of the manager.
//
// # What differs from kube-controller-manager
//
// Behaviour, names and reasons of Events are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/cronjob), with these differences:
//
//   - Its Event MissSchedule is never sent, because it does not look for slots before the
//     deadline.
//   - With "@every 1h" and a deadline of a minute it never starts a Job: it counts the hour from
//     the deadline. Here the hour counts from the last Job.
//   - After a kill between the two writes it sends UnexpectedJob, and with Forbid it may start a
//     second Job beside the first.
//   - A schedule of several slots a minute stops after a Job whose name exists. Here the next
//     minute starts one, and an Event says that only one Job a minute starts.
//   - It misses the days that have no midnight, such as the first day of summer time in Chile.
//   - An Event reports that another owner's Job has the name of a Job.
package cronjob
