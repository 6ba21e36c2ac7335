package meter

// usage is what the operating system says of this process. What it does not say is
// negative, and is not shown.
type usage struct {
	cpuSeconds               float64
	openFiles, maxFiles      float64
	virtual, maxVirtual      float64
	resident                 float64
	started                  float64 // seconds since 1970
	networkRead, networkSent float64
}

func unknownUsage() usage { return usage{-1, -1, -1, -1, -1, -1, -1, -1, -1} }

// AddProcess adds the figures of this process, as far as the system tells them.
func (r *Registry) AddProcess() {
	r.Add(func() []Family {
		u := processUsage()
		var out []Family
		for _, f := range []Family{
			single("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", KindCounter, u.cpuSeconds),
			single("process_open_fds", "Number of open file descriptors.", KindGauge, u.openFiles),
			single("process_max_fds", "Maximum number of open file descriptors.", KindGauge, u.maxFiles),
			single("process_virtual_memory_bytes", "Virtual memory size in bytes.", KindGauge, u.virtual),
			single("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", KindGauge, u.maxVirtual),
			single("process_resident_memory_bytes", "Resident memory size in bytes.", KindGauge, u.resident),
			single("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", KindGauge, u.started),
			single("process_network_receive_bytes_total", "Number of bytes received by the process over the network.", KindCounter, u.networkRead),
			single("process_network_transmit_bytes_total", "Number of bytes sent by the process over the network.", KindCounter, u.networkSent),
		} {
			if f.Samples[0].Value >= 0 {
				out = append(out, f)
			}
		}
		return out
	})
}
