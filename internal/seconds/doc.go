// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seconds turns a number of seconds of the API into a duration.
//
// The API has 64 bits for some numbers of seconds, such as activeDeadlineSeconds of a Job, and
// accepts all that are not negative. A [time.Duration] counts nanoseconds in 64 bits, which is 292
// years. A product that does not fit is some other number, often a negative one: a Job that may
// take a thousand years would be over as soon as it starts.
package seconds
