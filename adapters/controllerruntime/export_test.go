// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import crclient "sigs.k8s.io/controller-runtime/pkg/client"

// UnseenWrites returns how many writes a client has noted.
func UnseenWrites(c crclient.Client) int {
	own := c.(*ownClient).own
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.count
}
