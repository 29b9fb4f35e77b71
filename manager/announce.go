// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/object"
)

// Announce has the manager write, while it leads, where it serves its pages and the fingerprint of its certificate into a
// Lease, such as that of its election. "setpoint explain" then has the runs of its controllers, and joins them with those of
// other managers. served is the address of a listener of [Serve] with TLS. The manager needs the rights of
// [AnnounceRights] in the namespace of the Lease. It must be called before Run.
func (m *Manager) Announce(lease object.Key, served net.Addr) error {
	return m.Add(announce.NewAt(m.client, lease, served, m.log))
}

// AnnounceRights returns the rights that [Manager.Announce] needs in the namespace of the Lease.
func AnnounceRights(lease object.Key) []rbacv1.PolicyRule { return announce.RightsAt(lease) }
