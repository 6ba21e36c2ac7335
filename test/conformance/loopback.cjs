// Preloaded into the suite (node --require): its mock servers call listen(0)
// and would be open to the whole network. Every listener that names no address
// is put on 127.0.0.1.
//
// This hooks the last step of listen(), where the address is already decided,
// because passing a host to listen() makes it look the name up first, and the
// suite reads address() straight after the call.
'use strict';
const net = require('node:net');

const bind = net.Server.prototype._listen2;
if (typeof bind !== 'function') {
  throw new Error('loopback.cjs: this Node has no net.Server._listen2; the suite would listen on every interface');
}

net.Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  const anyAddress = address === null || address === undefined || address === '::' || address === '0.0.0.0';
  if (anyAddress && port >= 0) {
    return bind.call(this, '127.0.0.1', port, 4, ...rest);
  }
  return bind.call(this, address, port, addressType, ...rest);
};
