// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import "time"

// Impatient shortens the wait for own writes after which the server is asked.
func Impatient(c *Controller, d time.Duration) { c.own.patience = d }
