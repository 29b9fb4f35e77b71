// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workqueue hands keys to workers: each key to one worker at a time,
// however often it is added, with delays, rate limits, priorities that age,
// fairness between groups, and the causes of each run.
package workqueue
