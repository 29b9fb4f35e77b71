// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage sets a scene for the pages: a shop whose newest rollout waits for an image that cannot be pulled, as a
// cluster in memory and a record of runs. Tests and pictures show it.
package stage
