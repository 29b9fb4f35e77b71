// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "time"

// Lagging is the time until a key runs again after a run in which the server had an object that the cache did not show. By then the cache
// shows the object or its end; otherwise the server is asked again. There may be no event: the object may go while the watch is broken.
const Lagging = 10 * time.Second
